#!/usr/bin/env python3
"""What the management API takes with very many queues, and what the broker's clients feel of it.

    experiments/management_api.py [--binary PATH] [--queues 10000] [--asks 100]
    experiments/management_api.py --pairs 6

Prints the time of each kind of request (median and 99th percentile), the longest round trip of an AMQP client that
declares a queue passively all the while, also while nothing is asked, how many of the broker's turns took long, and the CPU
time that samples of the counters take. With --pairs: what samples cost of a broker's throughput; the load generator has to
lie beside the binary.
"""

import argparse
import base64
import json
import multiprocessing
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "experiments" / "peers")]

import pika  # noqa: E402
from harness.broker import Broker  # noqa: E402
from harness.management import Management  # noqa: E402
from peers import cpu_s  # noqa: E402

ASKED = [
    ("nothing", None),
    ("page of 100", "/api/queues?page=1&page_size=100"),
    ("page of 100, sorted by messages", "/api/queues?page=1&page_size=100&sort=messages&sort_reverse=true"),
    ("page of 100, sorted by a rate", "/api/queues?page=1&page_size=100&sort=message_stats.publish_details.rate"),
    ("page of 100, names that fit", "/api/queues?page=1&page_size=100&name=9&columns=name,messages"),
    ("overview", "/api/overview"),
    ("metrics", "/metrics"),
    ("metrics of each queue", "/metrics/per-object"),
    ("all queues", "/api/queues"),
]


def definitions(count):
    queues = [
        {"name": f"queue-{number:05}", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
        for number in range(count)
    ]
    return {"queues": queues}


def time_ms(http, path):
    request = urllib.request.Request(http + path)
    request.add_header("Authorization", "Basic " + base64.b64encode(b"guest:guest").decode())
    began = time.perf_counter()
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()
    return (time.perf_counter() - began) * 1_000


class Client:
    """An AMQP client, in a process of its own, whose longest round trip is what somebody waits.

    A thread beside the requests would wait for the interpreter's lock, which is handed over every 5 ms.
    """

    def __init__(self, uri):
        self.ours, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=ask_all_the_while, args=(uri, theirs), daemon=True)
        self.process.start()
        self.ours.recv()

    def end(self):
        self.ours.send("end")
        round_trips_ms = self.ours.recv()
        self.process.join()
        return sorted(round_trips_ms)


def ask_all_the_while(uri, pipe):
    channel = pika.BlockingConnection(pika.URLParameters(uri)).channel()
    round_trips_ms = []
    pipe.send("begins")
    while not pipe.poll():
        began = time.perf_counter()
        channel.queue_declare("queue-00000", passive=True)
        round_trips_ms.append((time.perf_counter() - began) * 1_000)
    pipe.send(round_trips_ms)


def long_turns(http, bounds_ms=(1, 2.5, 5, 10)):
    """Turns of the broker so far, and those that took longer than each of these: it serves nobody else meanwhile."""
    text = urllib.request.urlopen(http + "/metrics", timeout=60).read().decode()
    upto = {float(bound): int(count) for bound, count in re.findall(r'quelea_turn_seconds_bucket{le="([^"]+)"} (\d+)', text)}
    return {"turns": upto[float("inf")], **{f"turns_over_{bound}_ms": upto[float("inf")] - upto[bound / 1_000] for bound in bounds_ms}}


def statistics_cost(arguments, limits):
    """CPU time of the broker a message with samples every five seconds, and with one a minute, in turns, and the ratios."""
    rare = limits | {"QUELEA__HTTP__SAMPLE_INTERVAL_MS": "60000"}
    binary, costs = Path(arguments.binary).resolve(), {"usual": [], "rare": []}
    with Broker(binary, environment=limits) as usual, Broker(binary, environment=rare) as rarely:
        brokers = [("usual", usual), ("rare", rarely)]
        for _, broker in brokers:
            Management(broker.http).request("POST", "/api/definitions", definitions(arguments.queues))
        for number in range(arguments.pairs):
            for name, broker in brokers[:: 1 if number % 2 else -1]:
                load = [binary, "bench", "amqp", "--uri", broker.uri(), "--broker-pid", str(broker.process.pid), "-s", "100", "--auto-ack"]
                report = subprocess.run([*load, "-z", "10", "--json", "-"], capture_output=True, text=True, check=True)
                costs[name].append(json.loads(report.stdout)["broker_cpu_us_per_message"])
    ratios = [round(one / other, 3) for one, other in zip(costs["usual"], costs["rare"])]
    print(json.dumps({"what": "CPU a message with samples, of that without", "median": statistics.median(ratios), "pairs": ratios, "us": costs}))


def rest():
    """What the client feels of a machine on which nothing is asked: two seconds of it."""
    time.sleep(2)
    return [0.0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/quelea")
    parser.add_argument("--queues", type=int, default=10_000)
    parser.add_argument("--asks", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=0, help="runs of `quelea bench amqp` with and without samples, instead of requests")
    arguments = parser.parse_args()
    limits = {"QUELEA__HTTP__REQUESTS_PER_S_MAX": "100000"}
    if arguments.pairs:
        return statistics_cost(arguments, limits)
    with Broker(Path(arguments.binary).resolve(), environment=limits) as broker:
        began = time.perf_counter()
        Management(broker.http).request("POST", "/api/definitions", definitions(arguments.queues))
        print(json.dumps({"what": "import", "queues": arguments.queues, "s": round(time.perf_counter() - began, 2)}))
        before = cpu_s(broker.process.pid)
        time.sleep(30)
        share = (cpu_s(broker.process.pid) - before) / 30
        print(json.dumps({"what": "samples, of a core", "percent": round(share * 100, 2)}))
        for what, path in ASKED:
            client, turns_before = Client(broker.uri()), long_turns(broker.http)
            times = sorted(time_ms(broker.http, path) for _ in range(arguments.asks)) if path else rest()
            felt, turns_after = client.end(), long_turns(broker.http)
            row = {"what": what, "p50_ms": times[len(times) // 2], "p99_ms": times[len(times) * 99 // 100]}
            row |= {"client_p50_ms": felt[len(felt) // 2], "client_p999_ms": felt[len(felt) * 999 // 1000], "client_max_ms": felt[-1]}
            row |= {name: count - turns_before[name] for name, count in turns_after.items()}
            print(json.dumps({name: round(value, 2) if isinstance(value, float) else value for name, value in row.items()}))


if __name__ == "__main__":
    main()
