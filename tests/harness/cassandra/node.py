"""One node of Cassandra: a Java process over a directory, without Cassandra's distribution.

It keeps its address and its data over `kill` and `start`.
"""

import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from harness.cassandra import configuration
from harness.install import InstallError, apt, jars, javac
from harness.process import die_with_parent

READY_TIMEOUT_S = 300
"""A third node has taken 90 s beside two compilers."""
STOP_TIMEOUT_S = 60
POLL_S = 0.2
READY_LINES = [b"Starting listening for CQL clients", b"Startup complete"]
"""The first comes before it listens, the second also where it does not."""
SUPERUSER_LINE = b"Created default superuser role"
"""By it a new cluster's first user can sign in."""
MAIN = "org.apache.cassandra.service.CassandraDaemon"
JAVA = "openjdk-17-jre-headless"
POM = Path(__file__).parent / "pom.xml"
CLOCK = Path(__file__).parent / "ShiftedClock.java"


class CassandraError(Exception):
    """A node did not start, or did not stop."""


def install_cassandra() -> Path:
    """The directory of its jars, from Maven Central, once."""
    if shutil.which("java") is None:
        try:
            apt(["install", "--yes", "--no-install-recommends", JAVA])
        except (InstallError, OSError) as error:
            raise CassandraError(f"Cassandra needs Java 17: {error}") from error
    return jars("cassandra", POM) / "lib"


@dataclass(frozen=True)
class Place:
    """Where a node is and what makes it one of its cluster."""

    directory: Path
    address: str
    seed: str
    cql_port: int = 9042
    storage_port: int = 7000


@dataclass(frozen=True)
class Options:
    """What the nodes of a cluster have in common. A `detached` node outlives whoever started it."""

    heap: str = "384M"
    ring_delay_ms: int = 3_000
    is_alone: bool = False
    """The only node of its cluster waits for no gossip."""
    has_accounts: bool = False
    """Users sign in (cassandra/cassandra at first), and have rights."""
    keystore: Path | None = None
    """With a certificate, clients may use TLS on the same port."""
    clock_ahead_ms: int = 0
    """By how much the machine's clock is ahead, as the node has it."""
    commitlog_sync: str = "periodic"
    compiler_tiers: int = 4
    """1 is ready sooner, and slower later."""
    flushes_schema: bool = True
    """Without, a change of the schema takes a third of the time, and stands in the commit log alone."""
    detached: bool = False
    java_options: tuple[str, ...] = field(default=())


class Node:
    """`wrapper` are the words before the command, such as those of a network namespace."""

    def __init__(self, place: Place, options: Options, wrapper=()):
        self.place = place
        self.options = options
        self.wrapper = list(wrapper)
        self.log = place.directory / "logs" / "system.log"
        self.pid_file = place.directory / "pid"

    # -- life ---------------------------------------------------------------------------------

    def start(self) -> "Node":
        """Starts the process, and waits until clients are served."""
        if self.is_running():
            raise CassandraError(f"the node at {self.place.address} runs already, as process {self.pid()}")
        libraries = install_cassandra()
        is_first = not self.place.directory.exists()
        configuration.write(self.place, self.options)
        if self.options.clock_ahead_ms:
            javac(CLOCK, libraries, self.place.directory / "conf")
        log_begins_at = self.log.stat().st_size if self.log.exists() else 0
        command = [*self.wrapper, "java", *configuration.java_words(self.place, self.options, libraries), MAIN]
        with open(self.place.directory / "logs" / "output.log", "wb") as output:
            process = subprocess.Popen(
                command,
                cwd=self.place.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=None if self.options.detached else die_with_parent,
            )
        self.pid_file.write_text(str(process.pid))
        lines = [*READY_LINES]
        if self.options.has_accounts and is_first and self.place.seed == self.place.address:
            lines.append(SUPERUSER_LINE)
        self._wait_for_lines(process, lines, log_begins_at)
        return self

    def _wait_for_lines(self, process: subprocess.Popen, lines: list[bytes], log_begins_at: int) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            if (code := process.poll()) is not None:
                raise CassandraError(f"the node at {self.place.address} ended with {code}:\n{self.log_tail()}")
            if self.log.exists():
                with open(self.log, "rb") as log:
                    log.seek(log_begins_at)
                    written = log.read()
                if all(line in written for line in lines):
                    return
            time.sleep(POLL_S)
        self.kill()
        raise CassandraError(f"no answer from {self.place.address} within {READY_TIMEOUT_S} s:\n{self.log_tail()}")

    def stop(self) -> None:
        """Ends the process as an operator would; its commit log is written."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: what is in the page cache stays, as after the death of a process."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if (pid := self.pid()) is None:
            return
        os.kill(pid, number)
        # One that is paused hears nothing else.
        os.kill(pid, signal.SIGCONT)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while self.is_running():
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                deadline = float("inf")
            time.sleep(0.05)
        self.pid_file.unlink(missing_ok=True)

    def pause(self) -> None:
        """The process does nothing more, and its connections stay: what others see of a machine that hangs."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if (pid := self.pid()) is None:
            raise CassandraError(f"the node at {self.place.address} does not run")
        os.kill(pid, number)

    # -- what it is ---------------------------------------------------------------------------

    def pid(self) -> int | None:
        """Its process, if that is still ours: numbers are used again."""
        try:
            pid = int(self.pid_file.read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if MAIN.encode() in command and str(self.place.directory).encode() in command else None

    def is_running(self) -> bool:
        pid = self.pid()
        if pid is None:
            return False
        try:
            # A child that has ended is a zombie until somebody looks.
            return os.waitpid(pid, os.WNOHANG) == (0, 0)
        except ChildProcessError:
            return True

    def log_tail(self, bytes_max=4_000) -> str:
        files = [self.place.directory / "logs" / name for name in ("output.log", "system.log")]
        return "\n".join(file.read_bytes()[-bytes_max:].decode(errors="replace") for file in files if file.exists())
