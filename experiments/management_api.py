#!/usr/bin/env python3
"""What the management API takes with very many queues, and what the broker's clients feel of it.

    experiments/management_api.py [--binary PATH] [--queues 10000] [--asks 100]

Prints the time of each kind of request (median and 99th percentile), the longest round trip of an AMQP client that
declares a queue passively all the while, also while nothing is asked, and the CPU time that samples of the counters take.
"""

import argparse
import base64
import json
import multiprocessing
import os
import sys
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import pika  # noqa: E402
from harness.broker import Broker  # noqa: E402
from harness.management import Management  # noqa: E402

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


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rest():
    """What the client feels of a machine on which nothing is asked: two seconds of it."""
    time.sleep(2)
    return [0.0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/quelea")
    parser.add_argument("--queues", type=int, default=10_000)
    parser.add_argument("--asks", type=int, default=100)
    arguments = parser.parse_args()
    limits = {"QUELEA__HTTP__REQUESTS_PER_S_MAX": "100000"}
    with Broker(Path(arguments.binary).resolve(), environment=limits) as broker:
        began = time.perf_counter()
        Management(broker.http).request("POST", "/api/definitions", definitions(arguments.queues))
        print(json.dumps({"what": "import", "queues": arguments.queues, "s": round(time.perf_counter() - began, 2)}))
        before = cpu_s(broker.process.pid)
        time.sleep(30)
        share = (cpu_s(broker.process.pid) - before) / 30
        print(json.dumps({"what": "samples, of a core", "percent": round(share * 100, 2)}))
        for what, path in ASKED:
            client = Client(broker.uri())
            times = sorted(time_ms(broker.http, path) for _ in range(arguments.asks)) if path else rest()
            felt = client.end()
            row = {"what": what, "p50_ms": times[len(times) // 2], "p99_ms": times[len(times) * 99 // 100]}
            row |= {"client_p50_ms": felt[len(felt) // 2], "client_p999_ms": felt[len(felt) * 999 // 1000], "client_max_ms": felt[-1]}
            print(json.dumps({name: round(value, 2) if isinstance(value, float) else value for name, value in row.items()}))


if __name__ == "__main__":
    main()
