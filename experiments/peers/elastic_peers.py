"""What a relay is measured beside: how each rival is built, started and ended.

Nothing here is in the default build: what is fetched or compiled lives below ${QUELEA_CACHE:-~/.cache/quelea}.
"""

import functools
import os
import pathlib
import select
import shutil
import subprocess
import time
from dataclasses import dataclass

from cmq_peers import HERE, Missing, _apt, _run
from harness.cache import installed
from harness.ports import free_port
from harness.process import die_with_parent

PROGRAMS = HERE / "elastic"
READY_S = 30
STOP_S = 15
# Much more than a listener ever has waiting here: NATS drops who is slower than this.
NATS_CONFIGURATION = """
listen: "127.0.0.1:{port}"
max_pending: 4GB
write_deadline: "60s"
"""


@functools.cache
def proxy_program():
    """libzmq's zmq_proxy as a C program."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Missing("there is no C compiler")
    _apt("libzmq3-dev", lambda: pathlib.Path("/usr/include/zmq.h").exists())
    source = PROGRAMS / "c" / "proxy.c"
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"]

    def build(directory):
        _run(compiler, *flags, "-o", directory / "proxy", source, "-lzmq")

    return installed("elastic-peers-c", [source], " ".join(flags), build) / "proxy"


@functools.cache
def nats_program():
    """nats-server from its Go module."""
    if shutil.which("go") is None:
        raise Missing("there is no Go")
    pins = [PROGRAMS / "nats" / name for name in ("go.mod", "go.sum")]

    def build(directory):
        for pin in pins:
            shutil.copy(pin, directory)
        _run("go", "build", "-trimpath", "-o", directory / "nats-server", "github.com/nats-io/nats-server/v2", cwd=directory)

    return installed("elastic-peers-nats", pins, _run("go", "version"), build) / "nats-server"


class Server:
    """A started server: where producers and listeners connect, and its process."""

    def __init__(self, command, log, address=None):
        """`address` if the server does not print its own."""
        self.log = open(log, "ab")
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log,
            text=True, preexec_fn=die_with_parent)
        self.producers_at = self.listeners_at = address
        try:
            if address is None:
                self._read_ready(command, log)
            else:
                self._wait_for(address, command, log)
        except BaseException:
            self.stop()
            raise

    def _read_ready(self, command, log):
        """The proxy's `NAME ready … in=HOST:PORT out=HOST:PORT`, or a relay's `relay of "NAME" ready at HOST:PORT`."""
        ready, _, _ = select.select([self.process.stdout], [], [], READY_S)
        line = self.process.stdout.readline() if ready else ""
        fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
        _, _, native = line.partition(" ready at ")
        native = native.split()[0] if native.strip() else None
        self.producers_at, self.listeners_at = fields.get("in", native), fields.get("out", native)
        if " ready " not in line or self.producers_at is None:
            raise Missing(f"{command[0]} did not start: {line.strip()} {pathlib.Path(log).read_text()[-500:]}")

    def _wait_for(self, address, command, log):
        import socket

        host, port = address.rsplit(":", 1)
        deadline = time.monotonic() + READY_S
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise Missing(f"{command[0]} did not start: {pathlib.Path(log).read_text()[-500:]}")

    @property
    def pid(self):
        return self.process.pid

    def stop(self):
        """Ends only what this started."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


@dataclass(frozen=True)
class Peer:
    """`start(home)` gives a [`Server`] with its log below `home`."""

    name: str
    label: str
    wire: str
    start: object
    options: tuple = ()
    """Options of the load generator for it, when it is flooded."""
    drops: bool = False
    """It loses messages when it is flooded: its flood says nothing of a lossless server."""


def _relay(binary, zmtp=False):
    def start(home):
        listen = ["--listen", "127.0.0.1:0"]
        zmtp_listen = ["--zmtp-in", "127.0.0.1:0", "--zmtp-out", "127.0.0.1:0"] if zmtp else []
        return Server([binary, "relay", "--standalone", "--queue", "bench", *listen, *zmtp_listen], home / "relay.log")

    return start


def _proxy(*words):
    return lambda home: Server([proxy_program(), *words], home / "proxy.log")


def _nats(home):
    port = free_port()
    configuration = home / "nats.conf"
    configuration.write_text(NATS_CONFIGURATION.format(port=port))
    return Server([nats_program(), "-c", configuration], home / "nats.log", f"127.0.0.1:{port}")


def quelea(binary):
    return Peer("quelea", "Quelea relay", "native", _relay(binary))


# NATS does not hold back producers for slow listeners, so the generator does, when it floods.
NATS = Peer("nats", "nats-server", "nats", _nats, ("--window", "500"))
PROXY_LOSSLESS = Peer("zmq-proxy-nodrop", "libzmq proxy, lossless", "zmtp", _proxy("nodrop"))
PROXY = Peer("zmq-proxy", "libzmq proxy, default", "zmtp", _proxy(), drops=True)
RIVALS = (PROXY_LOSSLESS, PROXY, NATS)


def environment_note():
    """Load of the machine, for whoever reads the figures."""
    return f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
