"""A Quelea of our own, started from its binary, or somebody else's broker named by a URI."""

import os
import select
import signal
import subprocess
import tempfile
import time
import urllib.parse
from pathlib import Path

from harness.ports import free_port
from harness.process import die_with_parent

READY_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60
START_ATTEMPTS = 3


class BrokerError(Exception):
    """The broker did not start, or did not stop, as it should."""


class Broker:
    """One `quelea serve`. It keeps its ports and its data over `kill` and `start`."""

    external = False

    def __init__(self, binary, directory=None, environment=None, wrapper=()):
        self.binary = str(binary)
        self._temporary = None
        if directory is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="quelea-test-")
            directory = self._temporary.name
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.data_dir = self.directory / "data"
        self.log = self.directory / "broker.log"
        self.environment = dict(environment or {})
        self.wrapper = list(wrapper)
        self.ready_timeout_s = READY_TIMEOUT_S
        self.host = "127.0.0.1"
        self.port = None
        self.http_port = None
        self.sqs_port = None
        self.process = None
        self.ready_line = ""

    # -- life ---------------------------------------------------------------------------------

    def start(self):
        """Starts the process and waits for its ready line."""
        fresh = self.port is None
        for attempt in range(START_ATTEMPTS):
            if fresh:
                self.port, self.http_port, self.sqs_port = free_port(), free_port(), free_port()
            try:
                return self._start_once()
            except BrokerError:
                if attempt + 1 == START_ATTEMPTS or not self._address_was_taken():
                    raise
        return self

    def _start_once(self):
        environment = {
            **os.environ,
            "QUELEA__AMQP__LISTEN": f"{self.host}:{self.port}",
            "QUELEA__HTTP__LISTEN": f"{self.host}:{self.http_port}",
            "QUELEA__DATA_DIR": str(self.data_dir),
            "QUELEA__SQS__LISTEN": f"{self.host}:{self.sqs_port}",
            "QUELEA__ELASTIC__LISTEN": "",
            **self.environment,
        }
        # What is None is not set at all.
        environment = {name: value for name, value in environment.items() if value is not None}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.wrapper, self.binary, "serve"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                cwd=self.directory,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        self.ready_line = self._wait_for_ready_line()
        return self

    def _wait_for_ready_line(self) -> str:
        deadline = time.monotonic() + self.ready_timeout_s
        seen = b""
        descriptor = self.process.stdout.fileno()
        while time.monotonic() < deadline:
            readable, _, _ = select.select([descriptor], [], [], deadline - time.monotonic())
            if not readable:
                break
            data = os.read(descriptor, 65_536)
            if not data:
                code = self.process.wait()
                raise BrokerError(f"the broker ended with {code} before it was ready:\n{self.log_tail()}")
            seen += data
            for line in seen.decode(errors="replace").split("\n")[:-1]:
                if line.startswith("quelea ready "):
                    return line
        self.kill()
        raise BrokerError(f"the broker was not ready within {self.ready_timeout_s} s:\n{self.log_tail()}")

    def _address_was_taken(self) -> bool:
        return "in use" in self.log_tail().lower()

    def kill(self):
        """SIGKILL to the process group: what a power cut leaves, save for the page cache."""
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self._reap()

    def terminate(self) -> int:
        """SIGTERM; returns the exit code of the graceful stop."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerError(f"no graceful stop within {STOP_TIMEOUT_S} s:\n{self.log_tail()}") from None
        self._reap()
        return code

    def _reap(self):
        self.process.wait()
        self.process.stdout.close()
        self.process = None

    def restart_after_kill(self):
        self.kill()
        return self.start()

    def restart_gracefully(self):
        code = self.terminate()
        if code != 0:
            raise BrokerError(f"the graceful stop ended with {code}:\n{self.log_tail()}")
        return self.start()

    def close(self):
        """Ends the process, whatever it is doing, and removes its data."""
        self.kill()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()

    # -- where it is --------------------------------------------------------------------------

    def uri(self, vhost="/", user="guest", password="guest") -> str:
        quoted = urllib.parse.quote(vhost, safe="")
        return f"amqp://{user}:{password}@{self.host}:{self.port}/{quoted}"

    @property
    def http(self) -> str:
        return f"http://{self.host}:{self.http_port}"

    @property
    def sqs(self) -> str:
        return f"http://{self.host}:{self.sqs_port}"

    # -- what it costs ------------------------------------------------------------------------

    def _status_bytes(self, field: str) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
        raise BrokerError(f"no {field} in the status of process {self.process.pid}")

    def resident_bytes(self) -> int:
        return self._status_bytes("VmRSS")

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def log_tail(self, bytes_max=4_000) -> str:
        return self.log.read_bytes()[-bytes_max:].decode(errors="replace") if self.log.exists() else ""


class ForeignBroker:
    """A broker that somebody else runs: QUELEA_TEST_URI, with QUELEA_TEST_HTTP for its management API, or QUELEA_TEST_SQS."""

    external = True

    def __init__(self, uri: str | None, http: str | None, sqs: str | None):
        parts = urllib.parse.urlsplit(uri or "")
        self.host = parts.hostname
        self.port = parts.port or 5672
        self.http = http
        self.http_port = urllib.parse.urlsplit(http).port if http else None
        self.sqs = sqs.rstrip("/") if sqs else None

    uri = Broker.uri

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def foreign_broker() -> ForeignBroker | None:
    uri, http, sqs = (os.environ.get(f"QUELEA_TEST_{name}") for name in ("URI", "HTTP", "SQS"))
    return ForeignBroker(uri, http, sqs) if uri or sqs else None


def binary_path() -> Path:
    """The binary under test; the runner builds it and names it."""
    path = os.environ.get("QUELEA_BINARY")
    if not path:
        raise BrokerError("QUELEA_BINARY names no binary: run `make test`, or tests/run.py, which builds it")
    return Path(path)


def refused(data_dir, *settings: str) -> subprocess.CompletedProcess:
    """A start with these settings that is expected to fail, on free ports: another broker may have the usual ones."""
    command = [binary_path(), "serve", "--data-dir", str(data_dir)]
    for setting in [*(f"{front}.listen=127.0.0.1:0" for front in ("amqp", "http", "sqs", "elastic")), *settings]:
        command += ["--set", setting]
    return subprocess.run(command, capture_output=True, text=True, timeout=READY_TIMEOUT_S, check=False)
