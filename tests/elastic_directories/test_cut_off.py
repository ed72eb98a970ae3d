"""A directory that is cut off from the store and the other directories, and not from relays and clients: both believe."""

import contextlib

import pytest
from harness.cassandra import cluster
from harness.elastic.broker import wait_for
from harness.elastic.order import Load, check
from harness.elastic.site import ElasticSite
from harness.management import Refused
from harness.netns import why_not

from elastic_directories.cassandra_store import CassandraStore
from elastic_directories.conftest import KIND
from elastic_directories.etcd_store import Etcd, serving
from elastic_directories.test_directories import joined, owner_among, shown_by

STORE, NAMES = "store", ("one", "other")


@pytest.fixture
def site(tmp_path):
    if reason := why_not():
        pytest.skip(f"NOT TESTED: directories that are cut off from each other: {reason}")
    with ElasticSite(tmp_path, "tests", STORE, *NAMES) as made, made.site.inside("tests"), store_on(made.site) as store:
        for name in NAMES:
            made.broker(name, environment=store.settings())
        yield made


@contextlib.contextmanager
def store_on(site):
    if KIND == "etcd":
        with serving(Etcd(site[STORE].address, site.wrapper(STORE))) as server:
            yield server
    else:
        with cluster.on_site(site, STORE, is_alone=True, compiler_tiers=1, heap="320M") as nodes:
            yield CassandraStore(nodes[1], nodes.contact_points())


def test_an_owner_that_is_cut_off_commands_no_more_and_the_other_does(site, clients, queue):
    producers, listeners = joined(clients, site.brokers, queue)
    owner = owner_among(site.brokers, queue)
    [other] = [broker for broker in site.brokers if broker is not owner]
    name, other_name = NAMES if owner is site.brokers[0] else reversed(NAMES)
    fence = owner.queue(queue)["fence"]
    relays = site.relays()
    with Load(producers) as load:
        load.wait_for_progress()
        site.site.cut(name, STORE, other_name)
        # Nobody tells the owner; its relays and clients hear it all the while. Its lease ends by its own clock.
        wait_for("the owner to give it up", lambda: (shown := shown_by(owner, queue)) and shown["owner"] is None)
        wait_for("the other to own it", lambda: (shown_by(other, queue) or {}).get("owner") == other.elastic)
        wait_for("all clients", lambda: (shown := other.queue(queue))["producers"] == 4 and shown["listeners"] == 2)
        wait_for("all relays", lambda: all(relay["connected"] for relay in other.relays(queue)))
        with pytest.raises(Refused) as refused:
            owner.define(queue, relays_min=1, relays_max=1)
        assert refused.value.status == 503
        other.move(queue)
        other.wait_for_moves(queue, 1)
        load.wait_for_progress(100)
        site.heal()
        wait_for("the old one to know", lambda: (shown_by(owner, queue) or {}).get("owner") == other.elastic)
        with pytest.raises(Refused) as refused:
            owner.define(queue, relays_min=1, relays_max=1)
        assert refused.value.status == 409
        load.wait_for_progress()
        load.stop()
    assert check(producers, listeners)["lost"] == 0
    shown = other.queue(queue)
    assert shown["fence"] > fence and shown["definition"]["relays_max"] == 2
    assert site.relays() == relays, "neither has ended the other's, or started any"
