"""What a suite of SQS clients is run against: a broker, or front-ends over Cassandra (harness/cassandra/front_ends.py)."""

from harness.broker import Broker, binary_path
from harness.cassandra.front_ends import FrontEnds, front_ends_wanted


def served(fresh=False, **environment) -> Broker | FrontEnds:
    """`fresh`: without what others have stored."""
    if front_ends_wanted():
        return FrontEnds(environment, fresh)
    return Broker(binary_path(), environment=environment)
