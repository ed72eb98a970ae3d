"""Lists of the API come in pages; the command line puts them together."""

import json
import subprocess

import pytest
from harness.elastic.broker import ElasticBroker, wait_for
from harness.management import Refused

QUEUES = ["a", "a b", "b", "c", "d"]


@pytest.fixture(scope="module")
def broker():
    with ElasticBroker() as broker:
        for queue in QUEUES:
            broker.define(queue, relays_min=2 if queue == "b" else 1)
        for queue in QUEUES:
            broker.wait_for_relays(queue)
        broker.wait_for_relays("b", 2)
        yield broker


def pages(broker, path, key, limit):
    """All pages; the last one is the one that is not full."""
    found, after = [], ""
    while True:
        page = broker.management.get(f"{path}?limit={limit}{after}")
        found.append([element[key] for element in page])
        if len(page) < limit:
            return found
        after = f"&after={page[-1][key].replace(' ', '%20')}"


def test_queues_come_by_name(broker):
    assert pages(broker, "/api/elastic/queues", "name", 2) == [["a", "a b"], ["b", "c"], ["d"]]
    assert pages(broker, "/api/elastic/queues", "name", 5) == [QUEUES, []]
    assert {queue["name"]: queue["relays"] for queue in broker.management.get("/api/elastic/queues")}["b"] == 2
    # One that is not there is a place in the order all the same.
    assert [queue["name"] for queue in broker.management.get("/api/elastic/queues?after=bb")] == ["c", "d"]


def test_a_queues_relays_are_not_torn(broker):
    found = pages(broker, "/api/elastic/relays", "queue", 3)
    assert found == [["a", "a b", "b", "b"], ["c", "d"]]


def test_one_queues_relays_come_by_number(broker):
    for path in ("queues/b/relays?", "relays?queue=b&"):
        [first] = broker.management.get(f"/api/elastic/{path}limit=1")
        [second] = broker.management.get(f"/api/elastic/{path}limit=1&after={first['id']}")
        assert second["id"] > first["id"] and {first["queue"], second["queue"]} == {"b"}
        assert broker.management.get(f"/api/elastic/{path}after={second['id']}") == []


def test_clients_come_by_id(broker, clients):
    made = {side: sorted(open_one(broker, "c").id for _ in range(5)) for side, open_one in sides(clients)}
    wait_for("all clients", lambda: (shown := broker.queue("c"))["producers"] == shown["listeners"] == 5)
    for side, ids in made.items():
        found = pages(broker, f"/api/elastic/queues/c/{side}", "id", 2)
        assert [int(one, 16) for page in found for one in page] == ids and len(found) == 3


def sides(clients):
    return [("producers", clients.producer), ("listeners", clients.listener)]


WRONG = [
    ("queues", "limit=0", 'limit: must be from 1 to 1000, is \\"0\\"'),
    ("events", "after=x", "after: invalid digit found in string"),
    ("queues", "limit=-1", 'limit: must be from 1 to 1000, is \\"-1\\"'),
    ("relays", "limit=1001", 'limit: must be from 1 to 1000, is \\"1001\\"'),
    ("queues/a/producers", "limit=1001", 'limit: must be from 1 to 1000, is \\"1001\\"'),
    ("queues/a/listeners", "after=me", 'after: must be an id of at most 32 hexadecimal digits, is \\"me\\"'),
    ("queues", "limit=many", "limit"),
    ("queues", "limits=3", "unknown field `limits`"),
    ("queues/a/relays", "limit=0", 'limit: must be from 1 to 1000, is \\"0\\"'),
    ("relays", "queue=a&after=b", 'after: must be a relay\'s number, is \\"b\\"'),
]


@pytest.mark.parametrize("path, query, says", WRONG, ids=[f"{row[0]}?{row[1]}" for row in WRONG])
def test_a_page_that_is_none_is_refused_by_its_field(broker, path, query, says):
    with pytest.raises(Refused) as refused:
        broker.management.get(f"/api/elastic/{path}?{query}")
    assert refused.value.status == 400 and says in refused.value.body, refused.value


def test_the_command_line_shows_all_pages(broker):
    # That it goes on where a page ends is a test of its own, in Rust: a page of the server holds all of these.
    command = [broker.binary, "admin", "--url", broker.http, "--json", "elastic"]
    for words, key, wanted in [
        (["queue", "list"], "name", QUEUES),
        (["relays"], "queue", ["a", "a b", "b", "b", "c", "d"]),
        (["relays", "b"], "queue", ["b", "b"]),
    ]:
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        assert [element[key] for element in json.loads(done.stdout)] == wanted
