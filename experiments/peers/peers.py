"""The brokers of a comparison: each is started, says that it is ready, is measured, is stopped."""

import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from harness.process import die_with_parent  # noqa: E402

READY_S = 180
STOP_S = 180


def cpu_s(pid):
    """CPU time of a process so far, all its threads together."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_with_us(words, **options):
    """`subprocess.run` of a command that does not outlive us, also when a second Ctrl-C ends us while we wait for it."""
    return subprocess.run([str(word) for word in words], text=True, check=False, preexec_fn=die_with_parent, **options)


class DidNotStart(SystemExit):
    """A broker did not say that it is ready; its last words. Who does not catch it ends with them."""


class Running:
    """A broker's process, from its ready line `NAME ready amqp=HOST:PORT … pid=PID …` on (or `sqs=`, or both)."""

    def __init__(self, command, environment, data_dir):
        self.started = time.monotonic()
        self.data_dir = data_dir
        self.log = open(data_dir.parent / "broker.log", "ab")
        self.process = subprocess.Popen(
            [str(word) for word in command], env=os.environ | environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=self.log, text=True, preexec_fn=lambda: die_with_parent(signal.SIGTERM))
        ready, _, _ = select.select([self.process.stdout], [], [], READY_S)
        line = self.process.stdout.readline() if ready else ""
        if " ready " not in line:
            # In order, since what it has started itself is to end too.
            self.pid = self.process.pid
            self.stop()
            log = (data_dir.parent / "broker.log").read_text(errors="replace")
            raise DidNotStart(f"{command[0]} did not start: {line}\n{log[-2000:]}")
        fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
        self.uri = f"amqp://guest:guest@{fields['amqp']}/%2f" if "amqp" in fields else None
        self.sqs = f"http://{fields['sqs']}" if "sqs" in fields else None
        self.pid = int(fields["pid"])
        self.metrics_url = f"http://{fields['http']}/metrics" if "http" in fields else None

    def resident_bytes(self):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def metrics(self):
        """Quelea's own counters by name; nothing for other brokers."""
        if self.metrics_url is None:
            return {}
        with urllib.request.urlopen(self.metrics_url, timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def stop(self):
        """In order; ends it hard if that takes too long."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self.log.close()

    def kill(self):
        """As the power does."""
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait(STOP_S)


class Service:
    """What a running broker is for `quelea bench sqs`."""

    def __init__(self, running, label=""):
        if running.sqs is None:
            running.stop()
            sys.exit("it has no SQS front")
        self.label = label
        self.endpoint, self.pid, self.stop = running.sqs, running.pid, running.stop


class Peer:
    """A kind of broker that can be started on a directory."""

    def __init__(self, name, label, command, environment):
        self.name, self.label, self.command, self.environment = name, label, command, environment
        self.suite_options = []
        """What `quelea bench amqp-suite` has to know of it."""
        self.is_durable = True

    def start(self, home):
        data_dir = home / "data"
        data_dir.mkdir(parents=True, exist_ok=True)
        return Running(self.command(data_dir), self.environment, data_dir)


def quelea(binary):
    fronts = ("AMQP", "HTTP", "SQS")
    environment = {f"QUELEA__{front}__LISTEN": "127.0.0.1:0" for front in fronts} | {"QUELEA__ELASTIC__LISTEN": ""}
    return Peer("quelea", "Quelea", lambda data: [binary, "serve", "--data-dir", data], environment)


def rabbitmq():
    """Debian's package, if it is installed."""
    if not os.path.exists("/usr/lib/rabbitmq/bin/rabbitmq-server"):
        return None
    script = HERE / "rabbitmq.py"
    return Peer("rabbitmq", "RabbitMQ", lambda data: [sys.executable, script, "--dir", data], {})


def qpid():
    """From Maven Central, if there is a Java; in memory only."""
    if not (shutil.which("java") and shutil.which("mvn")):
        return None
    script = HERE / "qpid.py"
    peer = Peer("qpid", "Qpid Broker-J", lambda _: [sys.executable, script], {})
    peer.suite_options = ["--no-expires"]
    peer.is_durable = False
    return peer


def elasticmq():
    """From Maven Central, if there is a Java; in memory only."""
    if not (shutil.which("java") and shutil.which("mvn")):
        return None
    script = HERE / "elasticmq.py"
    return Peer("elasticmq", "ElasticMQ", lambda _: [sys.executable, script], {})


class Home:
    """A directory for one start after the other, gone at the end."""

    def __init__(self, below):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="quelea-compare-", dir=below))

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)
