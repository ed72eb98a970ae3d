"""A broker with entries for ZeroMQ's sockets, and PUBs and SUBs at them."""

import json
import re
import urllib.request

from harness.elastic.broker import ElasticBroker, wait_for
from harness.ports import free_port

ENTRY = re.compile(r'a ZMTP entry is open queue="(?P<queue>[^"]*)" zmtp_in="(?P<producers>[^"]*)" zmtp_out="(?P<listeners>[^"]*)"')


class EntryBroker(ElasticBroker):
    """`entries`: a table for each, as `[[elastic.entry]]` has it; both sides are on free ports unless it says else."""

    def __init__(self, entries, default=None, **other):
        super().__init__(default=default, **other)
        self.entries = [{"zmtp_in": self._address(), "zmtp_out": self._address()} | entry for entry in entries]
        self.environment["QUELEA__ELASTIC__ENTRY"] = toml(self.entries)
        self.environment["QUELEA__LOGGING__LEVEL"] = "info,quelea_elastic_relay=debug"

    def _address(self) -> str:
        return f"{self.host}:{free_port()}"

    def producers_at(self, entry: int = 0) -> str:
        return f"tcp://{self.entries[entry]['zmtp_in']}"

    def listeners_at(self, entry: int = 0) -> str:
        return f"tcp://{self.entries[entry]['zmtp_out']}"

    def count(self, name: str, queue: str) -> int:
        """One of an entry's metrics."""
        with urllib.request.urlopen(f"{self.http}/metrics", timeout=20) as answer:
            page = answer.read().decode()
        found = re.search(rf'^quelea_elastic_entry_{name}(?:_total)?{{queue="{re.escape(queue)}"}} (\d+)', page, re.M)
        assert found, page
        return int(found[1])

    def wait_for_count(self, name: str, queue: str, expected) -> int:
        return wait_for(f"{name} of {queue}", lambda: (value := self.count(name, queue)) >= expected and (value or True))

    def logged(self, pattern: str) -> re.Match:
        return wait_for(f"{pattern} in the log", lambda: re.search(pattern, self.log.read_text()))


def toml(tables) -> str:
    """As one line of TOML: JSON's texts and numbers are TOML's too."""
    return "[" + ", ".join("{" + ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items()) + "}" for table in tables) + "]"
