"""What things cost by how many of them there are: queues, bindings, connections, consumers, messages in the log."""

import base64
import json
import math
import os
import pathlib
import statistics
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments" / "peers"))

from peers import Home, quelea  # noqa: E402

COUNTS = {
    "queues": {"smoke": [10, 100], "quick": [100, 1_000, 10_000], "full": [100, 1_000, 10_000, 100_000]},
    "bindings": {"smoke": [10, 100], "quick": [100, 1_000, 10_000], "full": [100, 1_000, 10_000, 100_000]},
    "connections": {"smoke": [10, 100], "quick": [100, 1_000, 4_000], "full": [100, 1_000, 10_000]},
    "consumers": {"smoke": [1, 10], "quick": [1, 10, 100], "full": [1, 10, 100, 1_000]},
    "messages": {"smoke": [1_000, 10_000], "quick": [10_000, 100_000, 1_000_000, 10_000_000],
                 "full": [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000]},
}
REPEATS = {"smoke": 1, "quick": 1, "full": 3}
REPEATED_MAX = 10_000
"""What is larger takes long, and varies less."""
LOAD_S = {"smoke": "0.2", "quick": "2", "full": "5"}
REQUEST_S = 600
DOCUMENT_MAX = 10_000
"""Objects of one import of definitions, whose documents have a limit."""


def cpu_s(pid):
    """CPU time of the threads that a process has, to the nanosecond: the ticks of its own line are too coarse for a hundred queues. Those have
    the threads that have ended, too, and so may be more."""
    threads = sum(int(task.read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
    user, system = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return max(threads, (int(user) + int(system)) / os.sysconf("SC_CLK_TCK"))


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


def standing(context, count, make, beside):
    """What so many objects that stay cost: to make, to keep, to start with, and to a message beside them, as `beside` measures it."""
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
            found["message_cpu_us"] = beside(context, broker)
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


def matched_cpu_us(count):
    """Of a transient message whose key is matched with so many binding keys of a topic exchange, and never repeats: a cache of routes would
    answer for another."""
    def measure(context, broker):
        report = context.bench("amqp-suite", "--target", broker.uri, "--broker-pid", broker.pid, "--quiet", "--experiments", "te-spsc",
                               "--patterns", count, "--keys", "unique", "--sizes", "100", "--round-s", LOAD_S[context.scale])
        return report["cases"][0]["rounds"][0]["broker_cpu_us_per_message"]
    return measure


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
        "queues": lambda count: standing(context, count, make_queues(count), message_cpu_us),
        "bindings": lambda count: standing(context, count, make_bindings(count), matched_cpu_us(count)),
        "connections": lambda count: connections(context, count),
        "consumers": lambda count: consumers(context, count),
        "messages": lambda count: standing(context, count, make_messages(count), message_cpu_us),
    }
    found, errors = {}, []
    for kind, of in measure.items():
        found[kind] = []
        for count in COUNTS[kind][context.scale]:
            try:
                repeats = REPEATS[context.scale] if count <= REPEATED_MAX else 1
                found[kind].append(middle([of(count) for _ in range(repeats)]))
            except Exception as failed:  # What fails takes nothing from what was measured of the others.
                errors.append(f"{count:,} {kind}: {failed}")
    return {**found, "errors": errors}


def middle(runs):
    """The median of each figure."""
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


STEADY = 1.15
"""The largest of a cost that does not grow, beside the smallest."""


def law(points, least=0):
    """The cost as a base and a power of the count, in words, and where it stops being linear. What is not above `least` is the machine's noise.
    None: too few points, or no power that fits."""
    points = [(x, y) for x, y in points if y > least]
    costs = [y for _, y in points]
    if len(points) > 1 and max(costs) <= STEADY * min(costs):
        return "does not grow"
    fit = fitted(points)
    if fit is None or fit[1] >= POWER_MAX:
        return None
    base, power = fit
    # What is near the base is more of its noise than of growth.
    bend = bends_at([(x, y - base) for x, y in points if y > 1.5 * base])
    grown = f"count to the power of {power:.2f}" + (f" above {base:,.3g}" if base else "")
    return grown + (f", more than linear from {bend:,} on" if bend else "")


def fitted(points):
    """(a, c) of y = a + b·x^c, which lies closest to the points by the square of the relative error, a and b at least 0: c = 1 is
    linear, 0 does not grow. Four points are needed for a base, two for a power. None: too few."""
    points = [(x, y) for x, y in points if x > 0 and y > 0]
    if len(points) < 4:
        power = exponent(points)
        return None if power is None else (0.0, power)
    return min((closest(points, hundredths / 100) for hundredths in range(round(100 * POWER_MAX) + 1)), key=lambda fit: fit[0])[1:]


POWER_MAX = 2.5
"""One as large is that of points which follow none."""


def closest(points, power):
    """(error, a, power) of the best a and b for a power: least squares of a/y + b·x^power/y = 1."""
    rows = [(1 / y, x ** power / y) for x, y in points]
    sums = [sum(one * other for one, other in ((row[i], row[j]) for row in rows)) for i, j in ((0, 0), (0, 1), (1, 1))]
    right = [sum(row[i] for row in rows) for i in (0, 1)]
    determinant = sums[0] * sums[2] - sums[1] ** 2
    candidates = [(0.0, right[1] / sums[2])]
    if determinant > 1e-12 * sums[0] * sums[2]:
        candidates.append(((right[0] * sums[2] - right[1] * sums[1]) / determinant, (right[1] * sums[0] - right[0] * sums[1]) / determinant))
    fits = [(sum((a * one + b * other - 1) ** 2 for one, other in rows), a, power) for a, b in candidates if a >= 0 and b >= 0]
    return min(fits)


def exponent(points):
    """b of y = a·x^b through the points by least squares of the logarithms: 1 is linear, 0 does not grow. None: too few."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len(logs) < 2:
        return None
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs))
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread if spread else None


def bends_at(points, steepest=1.1):
    """Where it stops being linear: the first count from which on the cost grows by more than this power of it, a quarter more than ten
    times for ten times as many. None: nowhere."""
    for (x, y), (next_x, next_y) in zip(points, points[1:]):
        if y > 0 and next_y > y and math.log(next_y / y) / math.log(next_x / x) > steepest:
            return x
    return None
