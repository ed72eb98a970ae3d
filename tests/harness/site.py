"""Machines that reach each other by a switch, until they are cut off: network namespaces on one bridge.

    with Site("directory", "relay1", "relay2") as site, site.inside("directory"):
        site.cut("directory", "relay1")
        site.heal()

What is cut off hears nothing more, as behind a switch that has failed: no connection is refused or reset. It needs what
harness/netns.py needs.
"""

import contextlib
import ctypes
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.netns import COMMAND_TIMEOUT_S, WAIT, NetworkError, fresh_stem, run_tool

CLONE_NEWNET = 0x4000_0000
NAMED = Path("/run/netns")
INTERFACE = "veth0"
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Host:
    """One machine: its namespace and its address."""

    namespace: str
    address: str


class Site:
    """Machines by their names; gone at the end, whatever happened in between."""

    def __init__(self, *names: str):
        stem = fresh_stem()
        self.switch = f"{stem}switch"
        self.hosts = {name: Host(f"{stem}h{number}", f"10.214.0.{number}") for number, name in enumerate(names, 1)}

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
        port = f"p{host.address.rsplit('.', 1)[1]}"
        run_tool("ip", "netns", "add", host.namespace)
        ends = (port, "netns", self.switch, "type", "veth", "peer", INTERFACE, "netns", host.namespace)
        run_tool("ip", "link", "add", *ends)
        run_tool("ip", "-n", self.switch, "link", "set", port, "master", "bridge0", "up")
        run_tool("ip", "-n", host.namespace, "link", "set", "lo", "up")
        run_tool("ip", "-n", host.namespace, "address", "add", f"{host.address}/24", "dev", INTERFACE)
        run_tool("ip", "-n", host.namespace, "link", "set", INTERFACE, "up")

    def _remove(self):
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

    def heal(self):
        """All reach each other again."""
        for name in self.hosts:
            run_tool(*self.wrapper(name), "iptables", WAIT, "-F", "INPUT")


def _enter(path: Path):
    with open(path) as namespace:
        _set(namespace.fileno())


def _set(descriptor: int):
    if _libc.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
