"""Elastic queues on machines of their own, in network namespaces that can be cut off from each other.

Relays are started by a program in the place of `quelea`, which puts each on one of the relays' machines. A machine that
is cut off cannot be told to end its relays either: then the program ends alone, as a provider's node agent that is
given up, and the relay goes on.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path

from harness.broker import binary_path
from harness.elastic.broker import ElasticBroker, wait_for
from harness.site import Site

RELAYS = ("relay1", "relay2", "relay3")
PROGRAM = """\
import os, pathlib, signal, subprocess, sys
HOSTS, BINARY, DIRECTORY = {hosts!r}, {binary!r}, pathlib.Path({directory!r})
words = sys.argv[1:]
number = int(next(word for word in words if word.startswith("--relay-id=")).split("=")[1])
def is_away(name):
    return (DIRECTORY / f"away-{{name}}").exists()
names = [name for name in HOSTS if not is_away(name)]
name = names[number % len(names)]
wrapper, address = HOSTS[name]
words = [f"--listen={{address}}:0" if word.startswith("--listen=") else word for word in words]
relay = subprocess.Popen([*wrapper, BINARY, *words], start_new_session=True)
(DIRECTORY / f"pid-{{relay.pid}}").write_text(name)
def end(*_):
    if is_away(name):
        sys.exit(0)
    relay.terminate()
signal.signal(signal.SIGTERM, end)
sys.exit(relay.wait())
"""


class ElasticSite:
    """A site with relays' machines, and what is started on it. `names` are the other machines."""

    def __init__(self, directory: Path, *names: str):
        self.directory = directory
        self.site = Site(*names, *RELAYS)
        self.brokers = []

    def __enter__(self):
        self.site.__enter__()
        try:
            self._write_program()
        except BaseException:
            self.site.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            with contextlib.ExitStack() as stack:
                for broker in self.brokers:
                    stack.callback(broker.close)
                self.site.heal()
        finally:
            try:
                for pid in self.relays():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                wait_for("relays to end", lambda: not self.relays())
            finally:
                self.site.__exit__()

    def _write_program(self):
        hosts = {name: (self.site.wrapper(name), self.site[name].address) for name in RELAYS}
        text = PROGRAM.format(hosts=hosts, binary=str(binary_path()), directory=str(self.directory))
        path = self.directory / "relay-program"
        path.write_text(f"#!{sys.executable}\n{text}")
        path.chmod(0o755)

    def broker(self, name: str, binary=None, environment=None) -> ElasticBroker:
        """Starts a directory on this machine."""
        settings = {
            "QUELEA__ELASTIC__RELAY_PROGRAM": str(self.directory / "relay-program"),
            # Machines of a test trust each other.
            "QUELEA__ELASTIC__OPEN_BEYOND_LOOPBACK": "true",
            # Its API is asked from another machine.
            "QUELEA__ACCESS__LOOPBACK_USERS": "[]",
            **(environment or {}),
        }
        broker = ElasticBroker(binary, environment=settings, wrapper=self.site.wrapper(name))
        broker.host = self.site[name].address
        self.brokers.append(broker)
        return broker.start()

    def relays(self) -> dict[int, str]:
        """The relays that run, whoever knows them: processes and their machines."""
        placed = {int(path.name.removeprefix("pid-")): path for path in self.directory.glob("pid-*")}
        return {pid: path.read_text() for pid, path in placed.items() if runs_relay(pid)}

    def machine_of(self, relay: dict) -> str:
        """Where a relay is, as the API shows it."""
        address = relay["address"].rsplit(":", 1)[0]
        return next(name for name in RELAYS if self.site[name].address == address)

    def take_away(self, relay_machine: str):
        """The provider does not reach this machine any more, and starts nothing there."""
        (self.directory / f"away-{relay_machine}").touch()

    def heal(self):
        for path in self.directory.glob("away-*"):
            path.unlink()
        self.site.heal()


def runs_relay(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z" and any(word.startswith(b"--request=") for word in words)
