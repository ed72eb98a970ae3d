"""What CMQ is measured beside: how each is installed, and the commands of its two ends.

Nothing here is in the default build: what is fetched or compiled lives below ${QUELEA_CACHE:-~/.cache/quelea}.
"""

import functools
import os
import pathlib
import shutil
import subprocess
import sys
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from harness.cache import installed  # noqa: E402

PROGRAMS = HERE / "cmq"
INSTALL_S = 900
BOTH = ("one-way", "ping-pong")
# Aeron reaches below Java's modules for its memory and its sockets.
OPENED = ["java.base/jdk.internal.misc=ALL-UNNAMED", "java.base/sun.nio.ch=ALL-UNNAMED"]


@dataclass(frozen=True)
class Peer:
    """`command(role, address, here)` gives the words that start one end; `here` is the sender's own host."""

    name: str
    label: str
    command: object
    kinds: tuple = BOTH
    loses: bool = False
    paced: bool = True
    """Without pacing even the loopback interface loses."""
    sizes_max: int = 1 << 20

    def ends(self, here="127.0.0.1"):
        return (lambda address: self.command("receive", address, here)), (
            lambda address: self.command("send", address, here))


class Missing(Exception):
    """A peer cannot be had on this machine; says why."""


def _run(*words, cwd=None):
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, timeout=INSTALL_S)
    if done.returncode != 0:
        raise Missing(f"{words[0]} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def _apt(package, present):
    """Installs Debian's package if `present()` says that it is missing."""
    if present():
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Missing(f"{package} is not installed, and only root can")
    _run("apt-get", "install", "--yes", "--no-install-recommends", package)


@functools.cache
def c_program():
    """The C peers, linked with libzmq."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Missing("there is no C compiler")
    _apt("libzmq3-dev", lambda: pathlib.Path("/usr/include/zmq.h").exists())
    sources = sorted((PROGRAMS / "c").glob("*.[ch]"))
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"]

    def build(directory):
        units = [source for source in sources if source.suffix == ".c"]
        _run(compiler, *flags, "-o", directory / "peer", *units, "-lzmq")

    return installed("cmq-peers-c", sources, " ".join(flags), build) / "peer"


@functools.cache
def msgpack_python():
    """A Python with MessagePack-RPC."""
    pins = PROGRAMS / "msgpack_rpc" / "requirements.txt"

    def build(directory):
        _run(sys.executable, "-m", "venv", directory)
        _run(directory / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "-r", pins)

    return installed("cmq-peers-msgpack", [pins], sys.version + sys.executable, build) / "bin" / "python"


@functools.cache
def aeron_classes():
    """The class path of Aeron and its peer."""
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            raise Missing(f"there is no {tool}")
    folder = PROGRAMS / "aeron"

    def build(directory):
        shutil.copy(folder / "pom.xml", directory)
        _run("mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={directory / 'lib'}", cwd=directory)
        _run("javac", "-cp", f"{directory / 'lib'}/*", "-d", directory / "classes", folder / "Peer.java")

    directory = installed("cmq-peers-aeron", [folder / "pom.xml", folder / "Peer.java"], "", build)
    return f"{directory / 'classes'}:{directory / 'lib'}/*"


def _c(transport):
    return lambda role, address, _here: [c_program(), transport, role, address]


def _msgpack(role, address, _here):
    return [msgpack_python(), PROGRAMS / "msgpack_rpc" / "peer.py", role, address]


def aeron(scratch):
    """Aeron keeps its logs in files below `scratch`, best in memory."""
    opens = [word for module in OPENED for word in ("--add-opens", module)]

    def command(role, address, here):
        return ["java", *opens, "-cp", aeron_classes(), "Peer", role, address, scratch, here]

    return Peer("aeron", "Aeron (UDP)", command)


UDP = Peer("udp", "raw UDP", _c("udp"), loses=True, sizes_max=65_507)
UDP_PACKED = Peer("udp-packed", "packed UDP, the limit", _c("udp-packed"), ("one-way",), loses=True, sizes_max=65_505)
PUSH_PULL = Peer("zeromq-push-pull", "ZeroMQ PUSH/PULL", _c("zeromq-push-pull"), ("one-way",))
REQ_REP = Peer("zeromq-req-rep", "ZeroMQ REQ/REP", _c("zeromq-req-rep"), ("ping-pong",))
MSGPACK = Peer("msgpack-rpc", "MessagePack-RPC", _msgpack)


def quelea(binary, name="quelea", label="CMQ", options=(), kinds=BOTH, loses=True, paced=True,
           sizes_max=Peer.sizes_max):
    """Quelea's own roles; `options` are those of `quelea bench cmq`."""
    def command(role, address, _here):
        return [binary, "bench", "cmq", "--role", role, "--address", address, *options]

    return Peer(name, label, command, kinds, loses, paced, sizes_max)


def queleas(binary):
    """The modes that are measured, by name."""
    modes = [
        quelea(binary),
        quelea(binary, "quelea-reliable", "CMQ reliable, ordered", ["--mode", "reliable-ordered"], loses=False),
        quelea(binary, "quelea-sealed", "CMQ encrypted", ["--sealed"]),
        quelea(binary, "quelea-classic", "CMQ classic (512 B, 200 ms)", ["--classic"], ("one-way",), paced=False,
               sizes_max=496),
    ]
    return {mode.name: mode for mode in modes}
