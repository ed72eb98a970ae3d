"""A broker with elastic queues, and clients that are closed when the test ends."""

from harness.elastic.fixtures import clients, elastic, queue

__all__ = ["clients", "elastic", "queue"]
