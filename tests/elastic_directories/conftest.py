"""Directories that share a store: QUELEA_TEST_METADATA says which, as in `elastic.metadata`."""

import os
import signal

import pytest
from harness.cassandra import cluster
from harness.elastic.broker import ElasticBroker
from harness.elastic.fixtures import clients, queue

from elastic_directories.cassandra_store import CassandraStore
from elastic_directories.etcd_store import Etcd, serving

__all__ = ["clients", "directories", "metadata", "queue"]
KIND = os.environ["QUELEA_TEST_METADATA"]


@pytest.fixture(scope="session")
def cassandra():
    with cluster.alone() as started:
        yield started


@pytest.fixture
def metadata(request):
    """A store with nothing in it."""
    if KIND == "etcd":
        with serving(Etcd()) as server:
            yield server
        return
    nodes = request.getfixturevalue("cassandra")
    store = CassandraStore(nodes[1], nodes.contact_points())
    yield store
    store.close()


@pytest.fixture
def directories(metadata):
    """Two, or as many as are asked for."""
    started = []

    def start(count=2):
        for _ in range(count):
            started.append(ElasticBroker(environment=metadata.settings()))
            started[-1].start()
        return started

    yield start
    for broker in started:
        if broker.is_running():
            broker.process.send_signal(signal.SIGCONT)
        broker.close()
