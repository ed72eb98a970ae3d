"""Lists: pages, order, names and columns, done by the server."""

import urllib.parse

import pytest
from harness.amqp.peer import until
from harness.management import Refused, segment


@pytest.fixture
def queues(api, vhost):
    """Twelve queues with as many messages as their numbers say."""
    for number in range(12):
        api.put(f"/api/queues/{vhost}/{'even' if number % 2 == 0 else 'Odd'}-{number:02}")
        body = {"routing_key": f"{'even' if number % 2 == 0 else 'Odd'}-{number:02}", "payload": "x", "payload_encoding": "string", "properties": {}}
        for _ in range(number):
            api.post(f"/api/exchanges/{vhost}/amq.default/publish", body)
    return [f"{'even' if number % 2 == 0 else 'Odd'}-{number:02}" for number in range(12)]


@pytest.fixture
def listed(api, vhost):
    def listed(kind="queues", **query):
        return api.get(f"/api/{kind}/{vhost}?{urllib.parse.urlencode(query)}")

    return listed


def names(objects):
    return [one["name"] for one in objects]


def test_pages_hold_all_once(queues, listed):
    pages = [listed(page=number, page_size=5) for number in (1, 2, 3)]
    assert [names(page["items"]) for page in pages] == [sorted(queues)[:5], sorted(queues)[5:10], sorted(queues)[10:]]
    counts = ("total_count", "filtered_count", "item_count", "page", "page_size", "page_count")
    assert [pages[2][count] for count in counts] == [12, 12, 2, 3, 5, 3]


def test_a_page_behind_the_last_is_refused(queues, listed):
    with pytest.raises(Refused, match="400") as refused:
        listed(page=4, page_size=5)
    assert refused.value.error == "page_out_of_range"


def test_an_empty_list_has_no_page_but_the_first_is_shown(listed):
    page = listed(page=1)
    assert (page["items"], page["page_count"], page["page_size"]) == ([], 0, 100)


def test_names_are_filtered_by_part_or_pattern(queues, listed):
    assert names(listed(name="odd", page=1)["items"]) == sorted(name for name in queues if "Odd" in name)
    assert names(listed(name="^even-0[02]$", use_regex="true", page=1)["items"]) == ["even-00", "even-02"]
    page = listed(name="even", page=1, page_size=2)
    assert (page["total_count"], page["filtered_count"], page["item_count"]) == (12, 6, 2)


@pytest.mark.quelea("RabbitMQ counts some seconds later")
def test_lists_are_sorted_by_any_field(queues, listed):
    by_messages = names(listed(sort="messages", sort_reverse="true"))
    assert by_messages == queues[::-1]
    assert names(listed(sort="message_stats.publish", page=1, page_size=3)["items"]) == queues[:3]


@pytest.mark.quelea("RabbitMQ counts some seconds later")
def test_columns_leave_out_the_rest(queues, listed):
    first = listed(columns="name,messages,message_stats.publish,nothing")[0]
    assert first == {"name": "Odd-01", "messages": 1, "message_stats": {"publish": 1}}


@pytest.mark.quelea("it names the field, the limit and the value, which RabbitMQ does not")
@pytest.mark.parametrize(
    "query, problem",
    [
        ({"page": "0"}, 'page must be from 1 to 4294967295, it is "0"'),
        ({"page": "1", "page_size": "501"}, 'page_size must be from 1 to 500, it is "501"'),
        ({"sort": "name", "sort_reverse": "maybe"}, 'sort_reverse must be true or false, it is "maybe"'),
        ({"name": "(", "use_regex": "true"}, "name is no pattern"),
        ({"name": "x" * 256}, "name has 256 bytes, the limit is 255"),
    ],
)
def test_nonsense_names_the_parameter(listed, query, problem):
    with pytest.raises(Refused, match="400") as refused:
        listed(**query)
    assert problem in refused.value.reason


@pytest.mark.quelea("RabbitMQ has no pages of bindings and consumers")
@pytest.mark.parametrize("kind", ["exchanges", "bindings", "consumers"])
def test_other_kinds_have_pages_too(listed, kind):
    page = listed(kind, page=1, page_size=500)
    assert (page["page"], page["item_count"]) == (1, len(page["items"]))


@pytest.mark.quelea("RabbitMQ lists connections some seconds later")
def test_connections_and_channels_of_a_user_or_a_virtual_host(api, peer, vhost, name):
    user = name("user")
    api.put_user(user, "secret", "")
    api.permit(vhost, user)
    connection = peer.connection(vhost=vhost, user=user, password="secret")
    connection.channel()
    [found] = api.get(f"/api/connections/username/{user}")
    assert found["user"] == user
    [channel] = api.get(f"/api/vhosts/{vhost}/channels")
    # One by itself says who consumes there, too.
    assert api.get(f"/api/channels/{segment(channel['name'])}") == channel | {"consumer_details": []}
    api.delete(f"/api/connections/username/{user}")
    with pytest.raises(Exception, match="320"):
        connection.process_data_events(time_limit=60)
    api.delete(f"/api/users/{user}")


@pytest.mark.quelea("RabbitMQ deletes no users if one of them is not there")
def test_users_without_permissions_and_many_deleted_at_once(api, vhost, name):
    here, there = name("here"), name("there")
    for user in (here, there):
        api.put_user(user, "secret")
    api.permit(vhost, here)
    without = names(api.get("/api/users/without-permissions"))
    assert there in without and here not in without
    api.post("/api/users/bulk-delete", {"users": [here, there, name("nobody")]})
    assert not {here, there} & set(names(api.get("/api/users")))
    with pytest.raises(Refused, match="400.*users must be a list"):
        api.post("/api/users/bulk-delete", {"users": "all"})


@pytest.mark.quelea("RabbitMQ knows the time of the head alone, where messages have one")
def test_a_queue_says_for_how_long_its_oldest_message_has_waited(api, broker, name):
    queue = name("queue")
    path = f"/api/queues/%2F/{queue}"
    api.put(path)
    assert api.get(path)["oldest_message_age_s"] is None
    api.post("/api/exchanges/%2F/amq.default/publish", {"routing_key": queue, "payload": "m", "payload_encoding": "string", "properties": {}})
    until(lambda: api.get(path)["oldest_message_age_s"] >= 1)
    api.delete(f"{path}/contents")
    assert api.get(path)["oldest_message_age_s"] is None
    api.delete(path)
