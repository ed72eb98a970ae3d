"""Answers that are pushed as server-sent events."""

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager

import pytest
from harness.broker import Broker, binary_path
from harness.management import Management

pytestmark = pytest.mark.quelea("RabbitMQ pushes nothing")
TIMEOUT_S = 60


@contextmanager
def watching(api, *paths, **more):
    """The stream of these paths: an iterator of (event, data)."""
    query = urllib.parse.urlencode([("path", path) for path in paths] + list(more.items()))
    request = urllib.request.Request(f"{api.http}/quelea/v1/watch?{query}", headers={"Authorization": api.authorization})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as stream:
        assert stream.headers["Content-Type"] == "text/event-stream"
        yield events(stream)


def events(stream):
    event = None
    for line in stream:
        word, _, text = line.decode().rstrip("\n").partition(": ")
        if word == "event":
            event = text
        elif word == "data":
            yield event, json.loads(text)


def until(events, is_it):
    deadline = time.monotonic() + TIMEOUT_S
    for event, data in events:
        if is_it(event, data):
            return data
        assert time.monotonic() < deadline
    raise AssertionError("the stream has ended")


def test_a_watch_answers_at_once_and_on_change_else_says_same(api, name):
    queue = name("watched")
    api.put(f"/api/queues/%2F/{queue}")
    path = f"/api/queues/%2F/{queue}"
    with watching(api, path, interval_ms=1_000) as pushed:
        event, first = next(pushed)
        assert (event, first["path"], first["status"], first["body"]["messages_ready"]) == ("answer", path, 200, 0)
        assert until(pushed, lambda event, data: event == "same") == {"path": path}
        body = {"routing_key": queue, "payload": "x", "payload_encoding": "string", "properties": {}}
        api.post("/api/exchanges/%2F/amq.default/publish", body)
        until(pushed, lambda event, data: event == "answer" and data["body"]["messages_ready"] == 1)
        api.delete(f"/api/queues/%2F/{queue}")
        gone = until(pushed, lambda event, data: event == "answer" and data["status"] != 200)
        assert (gone["status"], gone["body"]["error"]) == (404, "Object Not Found")


def test_several_paths_are_watched_by_one_stream(api):
    paths = ["/api/overview", "/api/queues", "/quelea/v1/audit"]
    with watching(api, *paths) as pushed:
        assert {next(pushed)[1]["path"] for _ in paths} == set(paths)


def test_a_watch_shows_what_its_user_may_see_until_another_password(api, name):
    user = name("user")
    api.put_user(user, "a-password", "management")
    with watching(api.signed_in(user, "a-password"), "/api/users", interval_ms=1_000) as pushed:
        assert next(pushed)[1]["status"] == 403
        api.put_user(user, "another", "management")
        assert until(pushed, lambda event, data: event == "answer")["status"] == 401
        assert next(pushed, None) is None, "the stream has ended"
    api.delete(f"/api/users/{user}")


def test_what_cannot_be_watched_is_said(api):
    for paths, more, reason in [
        ([], {}, "from 1 to 16 paths, these are 0"),
        (["/metrics"], {}, "is not below /api"),
        (["/quelea/v1/watch?path=/api/overview"], {}, "is a stream itself"),
        (["/api/overview"], {"interval_ms": 10}, "interval_ms must be from 1000 to 60000"),
    ]:
        with pytest.raises(urllib.error.HTTPError) as refused, watching(api, *paths, **more):
            pass
        assert refused.value.code == 400 and reason in json.loads(refused.value.read())["reason"]
    nobody = api.signed_in("nobody", base64.b64encode(b"x").decode())
    with pytest.raises(urllib.error.HTTPError) as refused, watching(nobody, "/api/overview"):
        pass
    assert refused.value.code == 401


@pytest.mark.process
def test_a_broker_that_stops_ends_the_streams_and_does_not_wait_for_them():
    with Broker(binary_path()) as broker:
        with watching(Management(broker.http), "/api/overview") as pushed:
            assert next(pushed)[0] == "answer"
            assert broker.terminate() == 0
            assert all(event in ("answer", "same") for event, _ in pushed)
