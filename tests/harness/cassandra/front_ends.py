"""Front-ends over Cassandra behind a balancer that gives each request to the next: to a client, one endpoint.

The variables QUELEA__CASSANDRA__… say where Cassandra is; QUELEA_TEST_FRONT_ENDS, how many front-ends a suite of SQS
clients gets instead of a broker."""

import itertools
import os
from concurrent.futures import ThreadPoolExecutor

from harness.broker import Broker, binary_path
from harness.round_robin import HOST, RoundRobin

COUNT = "QUELEA_TEST_FRONT_ENDS"
READY_TIMEOUT_S = 240
"""The first of a keyspace makes its tables, each of which every node has to agree to."""
_numbers = itertools.count(1)


def front_ends_wanted() -> int:
    """How many; 0: a suite runs against a broker."""
    return int(os.environ.get(COUNT, "0"))


class FrontEnds:
    """To tests they are a broker: they keep their ports, and their data, over `kill` and `start`.

    A `fresh` one has an account of its own: queues that others have made are not there."""

    external = False

    def __init__(self, environment=None, fresh=False, count=None):
        settings = {"QUELEA__STORE": "cassandra", **(environment or {})}
        if fresh:
            settings["QUELEA__SQS__ACCOUNT_ID"] = f"{os.getpid() % 1_000_000:06}{next(_numbers):06}"
        count = count or front_ends_wanted()
        self.each = [Broker(binary_path(), environment=settings) for _ in range(count)]
        for front_end in self.each:
            front_end.ready_timeout_s = READY_TIMEOUT_S
        self.balancer = None

    # -- life ---------------------------------------------------------------------------------

    def start(self) -> "FrontEnds":
        # By this thread, whose end would be theirs (`die_with_parent`).
        for front_end in self.each:
            front_end.start()
        if self.balancer is None:
            self.balancer = RoundRobin([front_end.sqs_port for front_end in self.each]).__enter__()
        return self

    def kill(self) -> None:
        self._all(Broker.kill, self.each)

    def terminate(self) -> int:
        """The worst of the exit codes."""
        return max(self._all(Broker.terminate, self.each), key=abs)

    def restart_after_kill(self) -> "FrontEnds":
        self.kill()
        return self.start()

    def restart_gracefully(self) -> "FrontEnds":
        assert self.terminate() == 0
        return self.start()

    def close(self) -> None:
        if self.balancer is not None:
            self.balancer.__exit__()
        self._all(Broker.close, self.each)

    def __enter__(self) -> "FrontEnds":
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()

    @staticmethod
    def _all(call, front_ends: list[Broker]) -> list:
        with ThreadPoolExecutor(len(front_ends)) as pool:
            return list(pool.map(call, front_ends))

    # -- where it is --------------------------------------------------------------------------

    @property
    def sqs(self) -> str:
        return f"http://{HOST}:{self.balancer.port}"

    @property
    def http(self) -> str:
        """The management API of the first."""
        return self.each[0].http

    def uri(self, *_, **__) -> str:
        raise NotImplementedError("front-ends over Cassandra do not speak AMQP")
