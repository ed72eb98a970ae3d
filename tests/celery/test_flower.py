"""Celery's own tools: events, `inspect`, and Flower, which reads queues from the management API."""

import json
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

import pytest
from celery_workers import FOLDER, done, wait_for
from harness.ports import free_port

CELERY = [sys.executable, "-B", "-m", "celery", "-A", "quelea_tasks"]


class Flower:
    def __init__(self, port):
        self.root = f"http://127.0.0.1:{port}"

    def page(self, path):
        with urllib.request.urlopen(self.root + path, timeout=60) as answer:
            return answer.read().decode()

    def get(self, path):
        return json.loads(self.page(path))

    def post(self, path, body):
        request = urllib.request.Request(self.root + path, json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def answers(self):
        try:
            return bool(self.get("/api/workers?refresh=1"))
        except OSError:
            return False


@pytest.fixture
def worker(workers):
    """One that sends events of its tasks."""
    return workers.start("--task-events")


@pytest.fixture
def flower(broker, workers, worker):
    port = free_port()
    api = urllib.parse.urlsplit(broker.http)._replace(path="/api/")
    api = api._replace(netloc=f"guest:guest@{api.netloc}").geturl()
    workers.environment["FLOWER_UNAUTHENTICATED_API"] = "true"
    options = ["flower", "--address=127.0.0.1", f"--port={port}", f"--broker-api={api}"]
    workers.run([*CELERY, *options], "flower")
    started = Flower(port)
    wait_for(started.answers, workers, "Flower knows the worker")
    return started


def inspect(workers, names, *words, timeout_s=60):
    """What these workers answer, by their names; it waits for all of them, but no longer than `timeout_s`."""
    command = [*CELERY, "inspect", "--timeout", str(timeout_s), "--destination", ",".join(names), "--json", *words]
    shown = subprocess.run(command, env=workers.environment, cwd=FOLDER, capture_output=True, text=True, timeout=120)
    return json.loads(shown.stdout) if shown.returncode == 0 else {}


def test_inspect_asks_every_worker(workers, worker):
    workers.start("--task-events")
    names = ["worker-0@localhost", "worker-1@localhost"]
    wait_for(lambda: len(inspect(workers, names, "ping", timeout_s=5)) == 2, workers, "both workers answer")
    queues = inspect(workers, names, "active_queues")
    assert {name: sorted(queue["name"] for queue in found) for name, found in queues.items()} == dict.fromkeys(
        names, ["plain", "ranked"]
    )
    assert all(stats["broker"]["transport"] == "amqp" for stats in inspect(workers, names, "stats").values())


def test_flower_shows_workers_tasks_and_queues(flower, workers):
    [(name, found)] = flower.get("/api/workers?refresh=1").items()
    assert name == "worker-0@localhost" and "quelea_tasks.plain" in found["registered"]
    task = flower.post("/api/task/async-apply/quelea_tasks.plain", {"args": [7]})["task-id"]
    wait_for(lambda: done(workers.effects) == [7], workers, "the task's effect")
    # By the worker's events.
    wait_for(lambda: flower.get(f"/api/task/info/{task}")["state"] == "SUCCESS", workers, "the task's end")
    assert flower.get(f"/api/task/info/{task}")["worker"] == "worker-0@localhost"
    # By the management API.
    lengths = {queue["name"]: queue["messages"] for queue in flower.get("/api/queues/length")["active_queues"]}
    assert lengths == {"plain": 0, "ranked": 0}
    page = flower.page("/broker")
    assert "plain" in page and "ranked" in page
