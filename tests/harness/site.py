"""Machines that reach each other by a switch, until they are cut off: network namespaces on one bridge.

    with Site("directory", "relay1", "relay2") as site, site.inside("directory"):
        site.cut("directory", "relay1")
        site.delay("relay2", 3)
        site.heal()

What is cut off hears nothing more, as behind a switch that has failed: no connection is refused or reset. What is delayed
answers so much later. It needs what harness/netns.py needs.
"""

import contextlib
import ctypes
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.delay_line import READY_LINE
from harness.install import TESTS
from harness.netns import COMMAND_TIMEOUT_S, WAIT, NetworkError, fresh_stem, run_tool
from harness.process import die_with_parent

CLONE_NEWNET = 0x4000_0000
NAMED = Path("/run/netns")
INTERFACE = "veth0"
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Host:
    """One machine: its namespace and its address."""

    namespace: str
    address: str

    @property
    def number(self) -> str:
        return self.address.rsplit(".", 1)[1]

    @property
    def port(self) -> str:
        """The switch's end of its cable."""
        return f"p{self.number}"


class Site:
    """Machines by their names; gone at the end, whatever happened in between."""

    def __init__(self, *names: str):
        stem = fresh_stem()
        self.switch = f"{stem}switch"
        self.hosts = {name: Host(f"{stem}h{number}", f"10.214.0.{number}") for number, name in enumerate(names, 1)}
        self._delays: dict[str, subprocess.Popen] = {}

    def __enter__(self):
        try:
            run_tool("ip", "netns", "add", self.switch)
            run_tool("ip", "-n", self.switch, "link", "add", "bridge0", "type", "bridge")
            run_tool("ip", "-n", self.switch, "link", "set", "bridge0", "up")
            for host in self.hosts.values():
                self._join(host)
        except NetworkError:
            self._remove()
            raise
        return self

    def __exit__(self, *_):
        self._remove()

    def _join(self, host: Host):
        run_tool("ip", "netns", "add", host.namespace)
        ends = (host.port, "netns", self.switch, "type", "veth", "peer", INTERFACE, "netns", host.namespace)
        run_tool("ip", "link", "add", *ends)
        run_tool("ip", "-n", self.switch, "link", "set", host.port, "master", "bridge0", "up")
        run_tool("ip", "-n", host.namespace, "link", "set", "lo", "up")
        run_tool("ip", "-n", host.namespace, "address", "add", f"{host.address}/24", "dev", INTERFACE)
        run_tool("ip", "-n", host.namespace, "link", "set", INTERFACE, "up")

    def _remove(self):
        for line in self._delays.values():
            line.kill()
            line.wait()
            line.stdout.close()
        for namespace in (*(host.namespace for host in self.hosts.values()), self.switch):
            # One that was never made is not there; the pairs go with their namespaces.
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, timeout=COMMAND_TIMEOUT_S)

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    def wrapper(self, name: str) -> list[str]:
        """The words before a command that is to run on this machine."""
        return ["ip", "netns", "exec", self[name].namespace]

    @contextlib.contextmanager
    def inside(self, name: str):
        """This thread is on the machine, and so are threads and processes that it starts meanwhile."""
        with open("/proc/thread-self/ns/net") as before:
            _enter(NAMED / self[name].namespace)
            try:
                yield
            finally:
                _set(before.fileno())

    def cut(self, name: str, *others: str):
        """Nothing passes any more between one machine and these, in neither direction."""
        for other in others:
            for here, there in ((name, other), (other, name)):
                run_tool(*self.wrapper(here), "iptables", WAIT, "-A", "INPUT", "-s", self[there].address, "-j", "DROP")

    def delay(self, name: str, seconds: float):
        """What this machine sends arrives so much later, in order: so does each answer from it, and each to it."""
        self._end_delay(name)
        host, bridged, end = self[name], f"b{self[name].number}", f"e{self[name].number}"
        run_tool("ip", "-n", self.switch, "link", "add", bridged, "type", "veth", "peer", end)
        # A raw socket takes and gives frames as they are on a wire.
        for wrapper, interface in ((self._at_switch(), bridged), (self.wrapper(name), INTERFACE)):
            run_tool(*wrapper, "ethtool", "-K", interface, "tso", "off", "gso", "off", "tx", "off")
        run_tool("ip", "-n", self.switch, "link", "set", end, "up")
        run_tool("ip", "-n", self.switch, "link", "set", host.port, "nomaster")
        run_tool("ip", "-n", self.switch, "link", "set", bridged, "master", "bridge0", "up")
        line = subprocess.Popen(
            [*self._at_switch(), sys.executable, "-m", "harness.delay_line", host.port, end, str(seconds)],
            cwd=TESTS,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent,
        )
        self._delays[name] = line
        if line.stdout.readline().strip() != READY_LINE:
            raise NetworkError(f"no delay of {name}")

    def _end_delay(self, name: str):
        if line := self._delays.pop(name, None):
            line.kill()
            line.wait()
            line.stdout.close()
            run_tool("ip", "-n", self.switch, "link", "delete", f"b{self[name].number}")
            run_tool("ip", "-n", self.switch, "link", "set", self[name].port, "master", "bridge0")

    def _at_switch(self) -> list[str]:
        return ["ip", "netns", "exec", self.switch]

    def heal(self):
        """All reach each other again."""
        for name in self.hosts:
            run_tool(*self.wrapper(name), "iptables", WAIT, "-F", "INPUT")
            self._end_delay(name)


def _enter(path: Path):
    with open(path) as namespace:
        _set(namespace.fileno())


def _set(descriptor: int):
    if _libc.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
