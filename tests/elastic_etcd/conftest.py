"""An etcd and directories that share it."""

import signal

import pytest
from harness.elastic.broker import ElasticBroker
from harness.elastic.fixtures import clients, queue

from elastic_etcd.etcd import Etcd, serving, settings

__all__ = ["clients", "directories", "etcd", "queue"]


@pytest.fixture
def etcd():
    with serving(Etcd()) as server:
        yield server


@pytest.fixture
def directories(etcd):
    """Two, or as many as are asked for."""
    started = []

    def start(count=2):
        for _ in range(count):
            started.append(ElasticBroker(environment=settings(etcd)))
            started[-1].start()
        return started

    yield start
    for broker in started:
        if broker.is_running():
            broker.process.send_signal(signal.SIGCONT)
        broker.close()
