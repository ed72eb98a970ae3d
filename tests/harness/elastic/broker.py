"""A Quelea of our own that serves elastic queues, and what tests do to its relays."""

import json
import os
import signal
import time
from pathlib import Path

from harness.broker import Broker, BrokerError, binary_path
from harness.management import Management, Refused, segment
from harness.ports import free_port

PATIENCE_S = 60
"""Nothing that a test waits for takes so long; what does has failed."""


class ElasticBroker(Broker):
    """One `quelea serve` with its directory of elastic queues; its relays are processes of this machine.

    `default` is the definition of queues that are made on first use, `key` the secret that clients show. `environment`
    has further settings, as `QUELEA__ELASTIC__RELAYS_ON_EXIT`. `close` ends the broker and every relay that it started.
    """

    def __init__(self, binary=None, directory=None, environment=None, *, default=None, key: bytes | None = None, wrapper=()):
        super().__init__(binary or binary_path(), directory, environment, wrapper)
        self.elastic_port = None
        self.key = key or b""
        if default is not None:
            self.environment["QUELEA__ELASTIC__DEFAULT"] = json.dumps(default)
        if key is not None:
            key_file = self.directory / "elastic.key"
            key_file.write_text(key.hex())
            key_file.chmod(0o600)
            self.environment["QUELEA__ELASTIC__KEY_FILE"] = str(key_file)

    def _start_once(self):
        if not self.ready_line:  # The ports of a life before are kept.
            self.elastic_port = free_port()
            self.environment["QUELEA__ELASTIC__LISTEN"] = self.elastic
        return super()._start_once()

    def close(self):
        """Ends the broker and all relays, also those of lives before, and removes its data."""
        leases = self.leases()
        self.kill()
        for lease in leases + self.leases():
            if is_process(lease):
                os.kill(lease["pid"], signal.SIGKILL)
        wait_for("relays to end", lambda: not any(map(is_process, leases)))
        super().close()

    def leases(self) -> list[dict]:
        """The provider's own files: which process is which relay. They are there without a directory, too."""
        found = []
        for path in (self.data_dir / "elastic" / "relays").glob("*.lease"):
            try:
                found.append(json.loads(path.read_bytes()))
            except FileNotFoundError:
                pass  # It ended in this moment.
        return found

    # -- where it is --------------------------------------------------------------------------

    @property
    def elastic(self) -> str:
        """The directory's address."""
        return f"{self.host}:{self.elastic_port}"

    @property
    def management(self) -> Management:
        return Management(self.http)

    # -- what is there ------------------------------------------------------------------------

    def define(self, queue: str, **definition):
        self.management.put(f"/api/elastic/queues/{segment(queue)}", definition)

    def queue(self, name: str) -> dict:
        return self.management.get(f"/api/elastic/queues/{segment(name)}")

    def relays(self, queue: str) -> list[dict]:
        return self._of(queue, "relays")

    def producers(self, queue: str) -> list[dict]:
        return self._of(queue, "producers")

    def listeners(self, queue: str) -> list[dict]:
        return self._of(queue, "listeners")

    def events(self, queue: str) -> list[dict]:
        return self._of(queue, "events")

    def _of(self, queue: str, what: str):
        return self.management.get(f"/api/elastic/queues/{segment(queue)}/{what}")

    def relays_up(self, queue: str) -> list[dict]:
        return [relay for relay in self.relays(queue) if relay["state"] == "up"]

    def wait_for_relays(self, queue: str, count: int = 1) -> list[dict]:
        """Until so many relays of the queue are up."""
        return wait_for(f"{count} relays of {queue}", lambda: enough(self.relays_up(queue), count))

    def pid_of(self, queue: str, relay: int | None = None) -> int:
        """The process of a relay by its number; of any that is up."""
        for shown in self.relays_up(queue):
            if relay in (None, shown["id"]) and shown["pid"]:
                return shown["pid"]
        raise BrokerError(f"{queue} has no relay {relay or ''} that is up: {self.relays(queue)}")

    # -- what is done to it -------------------------------------------------------------------

    def signal_relay(self, queue: str, relay: int | None = None, number=signal.SIGKILL) -> int:
        """Sends a relay a signal; `SIGSTOP` makes one that lies dead but connected. Returns its process."""
        pid = self.pid_of(queue, relay)
        os.kill(pid, number)
        return pid

    def relay_of_producer(self, queue: str) -> int:
        """The relay of the only producer."""
        producers = [producer for producer in self.producers(queue) if producer["relay"] is not None]
        assert len(producers) == 1, producers
        return producers[0]["relay"]

    def kill_relay_of_producer(self, queue: str) -> int:
        """`kill -9` to the relay of the only producer; waits until the producer has another one. Returns the process."""
        relay = self.relay_of_producer(queue)
        pid = self.signal_relay(queue, relay)
        wait_for(
            f"relay {relay} to be replaced",
            lambda: all(shown["id"] != relay for shown in self.relays_up(queue))
            and [producer for producer in self.producers(queue) if producer["relay"] not in (None, relay)],
        )
        return pid

    def move(self, queue: str, producer: str | None = None, to: int | None = None) -> dict:
        """Has a producer moved; without its id any, in turn. Waits until it can be asked for, not for its end."""
        wanted = {name: value for name, value in (("producer", producer), ("to", to)) if value is not None}
        last = None

        def begun():
            nonlocal last
            try:
                return self.management.request("POST", f"/api/elastic/queues/{segment(queue)}/moves", wanted)
            except Refused as refused:
                if refused.status != 409:
                    raise
                last = refused  # It is being moved still, or no other relay is up.

        try:
            return wait_for(f"a move of {queue} to be taken", begun)
        except BrokerError as error:
            raise BrokerError(f"{error}: {last}") from None

    def wait_for_moves(self, queue: str, count: int, aborted_max: int | None = None) -> None:
        """Until so many moves have been done since the directory knows the queue, and none is under way.

        A move may be given up, because a client did not answer in time for example: it is asked for again. More than
        `aborted_max` that were given up, also since the directory knows the queue, are a failure: `max(2, count // 5)`
        if it is not given.
        """
        allowed = max(2, count // 5) if aborted_max is None else aborted_max

        def done():
            shown = self.queue(queue)
            if shown["moves_aborted"] > allowed:
                reasons = [event["reason"] for event in self.events(queue) if event["kind"] == "abort"]
                raise BrokerError(f"{shown['moves_aborted']} moves of {queue} were given up, more than {allowed}: {reasons}")
            if shown["moves_under_way"]:
                return False
            if shown["moves_done"] < count:
                self.move(queue)
            return shown["moves_done"] >= count

        wait_for(f"{count} moves of {queue}", done)


def enough(found: list, count: int) -> list | None:
    return found if len(found) >= count else None


def is_process(lease: dict) -> bool:
    """Whether the lease's process still runs: the same, not a later one with its number."""
    try:
        words = Path(f"/proc/{lease['pid']}/cmdline").read_bytes().split(b"\0")
        state = Path(f"/proc/{lease['pid']}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z" and f"--request={lease['request']}".encode() in words


def wait_for(what: str, condition, timeout_s: float = PATIENCE_S):
    """Polls until `condition` returns something true, and returns that.

    503 and 404 are not yet: so a directory answers for a queue that it is about to take over, or does not know again after
    its start.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        found, refused = unless_unavailable(condition)
        if found:
            break
        if time.monotonic() > deadline:
            raise BrokerError(f"waited {timeout_s} s for {what}" + (f": {refused}" if refused else ""))
        time.sleep(0.01)
    return found


def unless_unavailable(condition):
    """What it returns, or why the directory refuses to say for now."""
    try:
        return condition(), None
    except Refused as refused:
        if refused.status not in (404, 503):
            raise
        return None, refused
