"""A client that behaves, on new connections each time. What it asks for is served or not: nothing here is timed."""

import json
import socket
import urllib.request

from harness.amqp.frames import Raw
from harness.management import Management

PATIENCE_S = 60
"""Far beyond what an answer takes on any machine: who waits so long is shut out."""


class Probe:
    """Each method is one visit at one front; `served` counts those that ended well."""

    def __init__(self, broker):
        self.broker = broker
        self.served = {"amqp": 0, "http": 0, "sqs": 0}

    def amqp(self, user="guest", password="guest"):
        """Signs in with a new connection and opens a channel."""
        with Raw(self.broker, timeout_s=PATIENCE_S) as client:
            client.handshake(user=user, password=password)
            client.open_channel(1)
        self.served["amqp"] += 1

    def http(self, user="guest", password="guest"):
        assert Management(self.broker.http, user, password).get("/api/whoami")["name"] == user
        self.served["http"] += 1

    def sqs(self):
        request = urllib.request.Request(self.broker.sqs, data=b"{}", method="POST")
        request.add_header("Content-Type", "application/x-amz-json-1.0")
        request.add_header("X-Amz-Target", "AmazonSQS.ListQueues")
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            json.loads(answer.read())
        self.served["sqs"] += 1

    def all(self, times=1):
        """So many visits at each front; the first one that fails fails the test."""
        before = sum(self.served.values())
        for _ in range(times):
            self.amqp()
            self.http()
            self.sqs()
        assert sum(self.served.values()) == before + 3 * times
        return True


def metric(broker, name: str, **labels) -> int:
    """A counter of /metrics; 0 if it is not there."""
    shown = ",".join(f'{label}="{value}"' for label, value in labels.items())
    wanted = f"{name}{{{shown}}}" if shown else name
    with urllib.request.urlopen(f"{broker.http}/metrics", timeout=PATIENCE_S) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(wanted + " "):
                return int(float(line.rsplit(" ", 1)[1]))
    return 0


def half_open(host, port, data=b"", count=1):
    """Sockets that have said so much, and say no more. Those that are refused at once are not among them."""
    sockets = []
    for _ in range(count):
        try:
            opened = socket.create_connection((host, port), timeout=PATIENCE_S)
            opened.sendall(data)
        except OSError:
            continue
        sockets.append(opened)
    return sockets


def request(broker_port, data: bytes, host="127.0.0.1") -> tuple[int, bytes]:
    """Sends a request as it is; returns the status, and all that was answered."""
    with socket.create_connection((host, broker_port), timeout=PATIENCE_S) as client:
        client.sendall(data)
        answer = b""
        while chunk := client.recv(65_536):
            answer += chunk
    return int(answer.split(b" ", 2)[1]), answer
