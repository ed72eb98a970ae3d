"""Two network namespaces joined by a veth pair, where datagrams can be lost, links go down and MTUs change
(harness/site.py has as many as are wanted, which can be cut off from each other).

    with Network() as network:
        network.lose(0.014)
        subprocess.run(network.inside(network.sender, ["quelea", "push", f"{network.receiver.address}:4711"]))

It needs root and ip(8), iptables(8) and ethtool(8); `why_not()` says what is missing, after it has tried to install it.
Offloads of segmentation are off: netfilter would else see a train of 64 KiB as one packet and lose it whole.
"""

import functools
import itertools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass

PACKAGES = {"ip": "iproute2", "iptables": "iptables", "ip6tables": "iptables", "ethtool": "ethtool"}
INSTALL_TIMEOUT_S = 300
COMMAND_TIMEOUT_S = 30
MTU = 1_500
PREFIX = "quelea"
WAIT = "-w"
"""For iptables' lock, which namespaces share: other suites may have one too."""
PAPER_LOSS = 0.014
"""The rule of the paper's figure 6."""

_numbers = itertools.count(1)


def fresh_stem() -> str:
    """Of the names of namespaces that belong together; it has this process's number."""
    return f"{PREFIX}{os.getpid()}n{next(_numbers)}"


@dataclass(frozen=True)
class End:
    """One side: a namespace, its interface, its addresses."""

    namespace: str
    interface: str
    address: str
    address6: str


@functools.cache
def why_not() -> str | None:
    """The reason why there can be no namespaces here; None if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = sorted({package for tool, package in PACKAGES.items() if shutil.which(tool) is None})
    if missing and (refused := _install(missing)):
        return f"{', '.join(missing)} missing, and apt-get could not install it: {refused}"
    try:
        _remove_stale()
        with Network() as network:
            network.lose(PAPER_LOSS)
            network.dropped()
    except NetworkError as error:
        return f"this machine allows no network namespaces: {error}"
    return None


def _remove_stale():
    """Namespaces of runs that were killed: their names have the number of the process."""
    for name in run_tool("ip", "netns", "list").split():
        made_by = re.fullmatch(rf"{PREFIX}(\d+)n\d+[a-z]\w*", name)
        if made_by and not os.path.exists(f"/proc/{made_by[1]}"):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, timeout=COMMAND_TIMEOUT_S)


def _install(packages: list[str]) -> str | None:
    """The reason why it could not be done."""
    if shutil.which("apt-get") is None:
        return "there is no apt-get"
    command = ["apt-get", "-o", "DPkg::Lock::Timeout=300", "install", "--yes", "--no-install-recommends", *packages]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"it took more than {INSTALL_TIMEOUT_S} s"
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


class NetworkError(Exception):
    """A command of the system refused."""


class Network:
    """A pair of namespaces with names of its own; gone at the end, whatever happened in between."""

    def __init__(self, mtu=MTU, offload=False):
        self.mtu, self.offload = mtu, offload
        stem = fresh_stem()
        self.sender = End(f"{stem}s", "veth-s", "10.213.0.1", "fd71:7571::1")
        self.receiver = End(f"{stem}r", "veth-r", "10.213.0.2", "fd71:7571::2")
        self.ends = (self.sender, self.receiver)

    def __enter__(self):
        try:
            for end in self.ends:
                run_tool("ip", "netns", "add", end.namespace)
            names = [end.interface for end in self.ends]
            spaces = [end.namespace for end in self.ends]
            run_tool("ip", "link", "add", names[0], "netns", spaces[0], "type", "veth", "peer", names[1], "netns", spaces[1])
            for end in self.ends:
                self._bring_up(end)
        except NetworkError:
            self._remove()
            raise
        return self

    def __exit__(self, *_):
        self._remove()

    def _bring_up(self, end: End):
        if not self.offload:
            off = ("tx-udp-segmentation", "off", "tso", "off", "gso", "off")
            self.run(end, "ethtool", "-K", end.interface, *off)
        self.run(end, "ip", "link", "set", "lo", "up")
        self.run(end, "ip", "address", "add", f"{end.address}/24", "dev", end.interface)
        # Without detection of duplicates, which keeps an address unusable for a second.
        self.run(end, "ip", "-6", "address", "add", f"{end.address6}/64", "dev", end.interface, "nodad")
        self.run(end, "ip", "link", "set", end.interface, "mtu", str(self.mtu), "up")
        self.run(end, "ip", "route", "add", "224.0.0.0/4", "dev", end.interface)

    def _remove(self):
        for end in self.ends:
            # One that was never made is not there; the veth pair goes with its namespace.
            subprocess.run(["ip", "netns", "delete", end.namespace], capture_output=True, timeout=COMMAND_TIMEOUT_S)

    def inside(self, end: End, command) -> list[str]:
        """The words that run `command` in the namespace of `end`."""
        return ["ip", "netns", "exec", end.namespace, *map(str, command)]

    def run(self, end: End, *command) -> str:
        return run_tool(*self.inside(end, command))

    def lose(self, probability: float):
        """From now on the receiver's side drops so much of what arrives, each packet by itself."""
        self.lose_nothing()
        rule = ["-A", "INPUT", "-m", "statistic", "--mode", "random", "--probability", str(probability), "-j", "DROP"]
        for tool in ("iptables", "ip6tables"):
            # Neighbour discovery is ICMPv6; losing it would test the kernel's patience, not ours.
            only = ["-p", "udp"] if tool == "ip6tables" else []
            self.run(self.receiver, tool, WAIT, *rule[:2], *only, *rule[2:])

    def lose_nothing(self):
        for tool in ("iptables", "ip6tables"):
            self.run(self.receiver, tool, WAIT, "-F", "INPUT")

    def dropped(self) -> int:
        """Packets that the rule of `lose` has dropped."""
        listings = [self.run(self.receiver, tool, WAIT, "-L", "INPUT", "-v", "-x", "-n") for tool in ("iptables", "ip6tables")]
        return sum(int(count) for count in re.findall(r"^\s*(\d+)\s+\d+\s+DROP\b", "\n".join(listings), re.MULTILINE))

    def refusals(self) -> int:
        """Datagrams that came to a port of the receiver where nobody listened."""
        found = re.search(r"Udp:.*\nUdp: \d+ (\d+)", self.run(self.receiver, "cat", "/proc/net/snmp"))
        return int(found[1])

    def set_mtu(self, mtu: int):
        """On both sides, as a path that changes does."""
        for end in self.ends:
            self.run(end, "ip", "link", "set", end.interface, "mtu", str(mtu))

    def down(self, end: End):
        self.run(end, "ip", "link", "set", end.interface, "down")

    def up(self, end: End):
        """IPv6 addresses and routes go with the interface, so they are set again."""
        self.run(end, "ip", "link", "set", end.interface, "up")
        self.run(end, "ip", "-6", "address", "replace", f"{end.address6}/64", "dev", end.interface, "nodad")
        self.run(end, "ip", "route", "replace", "224.0.0.0/4", "dev", end.interface)


def run_tool(*command) -> str:
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NetworkError(f"{' '.join(words)}: {error}") from error
    if done.returncode != 0:
        raise NetworkError(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")
    return done.stdout
