"""A plugin for amqpstorm's own tests: where the broker is, and time enough on a busy machine."""

import os

from amqpstorm import Connection
from amqpstorm.management import ManagementApi

PATIENCE_S = 60


def give(of, **always):
    """Has each object of the class made with these words, whatever its maker says."""
    make = of.__init__
    of.__init__ = lambda self, *words, **named: make(self, *words, **{**named, **always})


def pytest_configure():
    give(Connection, port=int(os.environ["AMQP_PORT"]), timeout=PATIENCE_S)
    give(ManagementApi, timeout=PATIENCE_S)
