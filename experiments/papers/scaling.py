"""What things cost by how many of them there are: queues, bindings, connections, consumers, messages in the log."""

import base64
import json
import math
import pathlib
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments" / "peers"))

from peers import Home, cpu_s, quelea  # noqa: E402

COUNTS = {
    "queues": {"smoke": [10, 100], "quick": [100, 1_000, 10_000], "full": [100, 1_000, 10_000, 100_000]},
    "bindings": {"smoke": [10, 100], "quick": [100, 1_000, 10_000], "full": [100, 1_000, 10_000, 100_000]},
    "connections": {"smoke": [10, 100], "quick": [100, 1_000, 4_000], "full": [100, 1_000, 10_000]},
    "consumers": {"smoke": [1, 10], "quick": [1, 10, 100], "full": [1, 10, 100, 1_000]},
    "messages": {"smoke": [1_000, 10_000], "quick": [10_000, 100_000, 1_000_000, 10_000_000],
                 "full": [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000]},
}
LOAD_S = {"smoke": "0.2", "quick": "2", "full": "5"}
REQUEST_S = 600
DOCUMENT_MAX = 10_000
"""Objects of one import of definitions, whose documents have a limit."""


def disk_bytes(directory):
    return sum(file.stat().st_blocks * 512 for file in directory.rglob("*") if file.is_file())


def import_definitions(broker, **sections):
    """By the management API, some thousands at a time."""
    [(name, objects)] = sections.items()
    for start in range(0, len(objects), DOCUMENT_MAX):
        body = json.dumps({name: objects[start:start + DOCUMENT_MAX]}).encode()
        request = urllib.request.Request(broker.metrics_url.replace("/metrics", "/api/definitions"), body, method="POST")
        request.add_header("Authorization", "Basic " + base64.b64encode(b"guest:guest").decode())
        request.add_header("Content-Type", "application/json")
        urllib.request.urlopen(request, timeout=REQUEST_S).close()


def make_queues(count):
    """In a virtual host of their own, which may have no more than so many."""
    def make(context, broker):
        import_definitions(broker, vhosts=[{"name": "scaling"}])
        import_definitions(broker, queues=[
            {"name": f"scaling-{n}", "vhost": "scaling", "durable": True, "auto_delete": False, "arguments": {}} for n in range(count)])
    return make


def make_bindings(count):
    """Of one topic exchange and one queue, by patterns of two kinds."""
    def make(context, broker):
        import_definitions(broker, queues=[{"name": "bound", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}])
        import_definitions(broker, bindings=[
            {"vhost": "/", "source": "amq.topic", "destination": "bound", "destination_type": "queue", "arguments": {},
             "routing_key": f"group.{n}.#" if n % 2 else f"*.item.{n}"} for n in range(count)])
    return make


def make_messages(count):
    """Of 100 bytes, durable, in one queue that nobody consumes from."""
    def make(context, broker):
        context.bench("amqp", "--uri", broker.uri, "--broker-pid", broker.pid, "--quiet", "--mode", "publish-only", "--size", "100",
                      "--persistent", "--confirm", "2000", "--messages", count, "--warmup-s", "0", "--queue", "backlog", "--keep")
    return make


def standing(context, count, make):
    """What so many objects that stay cost: to make, to keep, to start with, and to a message beside them."""
    peer = quelea(context.quelea)
    with Home(context.scratch) as home:
        broker = peer.start(home)
        try:
            before_s, before_bytes, before_disk = cpu_s(broker.pid), broker.resident_bytes(), disk_bytes(broker.data_dir)
            make(context, broker)
            found = {
                "count": count,
                "cpu_us": (cpu_s(broker.pid) - before_s) * 1e6,
                "bytes": broker.resident_bytes() - before_bytes,
                "disk_bytes": disk_bytes(broker.data_dir) - before_disk,
            }
            found["message_cpu_us"] = message_cpu_us(context, broker)
        finally:
            broker.stop()
        began = time.monotonic()
        broker = peer.start(home)
        found["start_ms"] = (time.monotonic() - began) * 1e3
        broker.stop()
    return found


def message_cpu_us(context, broker, *options):
    """Of a transient message from a publisher to a consumer."""
    report = context.bench("amqp", "--uri", broker.uri, "--broker-pid", broker.pid, "--quiet", "--size", "100", "--auto-ack",
                           "--queue", "beside", "--transient-queues", "--duration-s", LOAD_S[context.scale], *options)
    return report["broker_cpu_us_per_message"]


def connections(context, count):
    """Idle ones, each with a channel. Where a process may open few files, the other protocols' part of them is for these."""
    peer = quelea(context.quelea)
    peer.environment |= {"QUELEA__SQS__CONNECTIONS_MAX": "100", "QUELEA__ELASTIC__CONNECTIONS_MAX": "100"}
    with Home(context.scratch) as home:
        broker = peer.start(home)
        try:
            report = context.bench("connections", "--uri", broker.uri, "--broker-pid", broker.pid, "--count", count)
        finally:
            broker.stop()
    return {"count": count, "cpu_us": report["broker_cpu_us_per_connection"] * count, "bytes": report["bytes_per_connection"] * count}


def consumers(context, count):
    """Of one queue, of which each takes its turn."""
    with Home(context.scratch) as home:
        broker = quelea(context.quelea).start(home)
        try:
            cost = message_cpu_us(context, broker, "--consumers", count)
        finally:
            broker.stop()
    return {"count": count, "message_cpu_us": cost}


def scaling(context):
    measure = {
        "queues": lambda count: standing(context, count, make_queues(count)),
        "bindings": lambda count: standing(context, count, make_bindings(count)),
        "connections": lambda count: connections(context, count),
        "consumers": lambda count: consumers(context, count),
        "messages": lambda count: standing(context, count, make_messages(count)),
    }
    found, errors = {}, []
    for kind, of in measure.items():
        found[kind] = []
        for count in COUNTS[kind][context.scale]:
            try:
                found[kind].append(of(count))
            except Exception as failed:  # What fails takes nothing from what was measured of the others.
                errors.append(f"{count:,} {kind}: {failed}")
    return {**found, "errors": errors}


def exponent(points):
    """b of y = a·x^b through the points by least squares of the logarithms: 1 is linear, 0 does not grow. None: too few."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len(logs) < 2:
        return None
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs))
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread if spread else None


def bends_at(points, steepest=1.25):
    """Where it stops being linear: the first count from which on the cost grows by more than this power of it. None: nowhere."""
    for (x, y), (next_x, next_y) in zip(points, points[1:]):
        if y > 0 and next_y > 0 and math.log(next_y / y) / math.log(next_x / x) > steepest:
            return x
    return None
