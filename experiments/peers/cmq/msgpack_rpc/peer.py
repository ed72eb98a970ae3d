"""MessagePack-RPC as a peer: `notify` one way, `call` there and back. python peer.py send|receive HOST:PORT

Speaks the protocol of the roles of `quelea bench cmq` (docs/benchmarks/bench.md). The server's loop runs in this one thread, as
the library has it; a run stops the loop when its last message has come.
"""

import json
import sys
import time

import msgpackrpc
from msgpackrpc.transport import tcp


class Meter:
    """CPU time of a run, without that of reading and printing lines after it."""

    def begin(self):
        self.process_ns = time.process_time_ns()

    def end(self):
        self.thread_ns = time.thread_time_ns()

    def read(self):
        return time.process_time_ns() - self.process_ns - (time.thread_time_ns() - self.thread_ns)


class Receiver:
    """The server; its public methods are what it can be asked for."""

    def __init__(self, address):
        self.count = self.messages = 0
        self.begun_ns = self.ended_ns = 0
        self.server = msgpackrpc.Server(Remote(self), builder=HereOnly)
        self.server.listen(address)
        self.bound = HereOnly.bound

    def taken(self):
        if self.count == 0:
            self.begun_ns = time.monotonic_ns()
        self.count += 1
        if self.count == self.messages:
            self.ended_ns = time.monotonic_ns()
            # Not at once: the answer to this call has still to leave.
            self.server._loop._ioloop.add_callback(self.server.stop)

    def run(self, _kind, _size, messages):
        self.count, self.messages = 0, messages
        say(armed=True)
        METER.begin()
        self.server.start()
        METER.end()
        return {"count": self.count, "begun_ns": self.begun_ns, "ended_ns": self.ended_ns}


class Remote:
    """What a client may call."""

    def __init__(self, receiver):
        self.receiver = receiver

    def take(self, _message):
        self.receiver.taken()

    def ping(self, message):
        self.receiver.taken()
        return message


class HereOnly:
    """The library's transport listens on every interface, and does not tell the port: this one does better."""

    bound = None

    class ServerTransport(tcp.ServerTransport):
        def listen(self, server):
            self._server = server
            self._mp_server = tcp.MessagePackServer(self, io_loop=server._loop._ioloop, encodings=self._encodings)
            self._mp_server.listen(self._address.port, self._address.host)
            HereOnly.bound = next(iter(self._mp_server._sockets.values())).getsockname()


class Sender:
    """The client."""

    def __init__(self, address):
        self.client = msgpackrpc.Client(address, timeout=None)

    def run(self, kind, size, messages):
        body = b"\0" * size
        METER.begin()
        begun_ns = time.monotonic_ns()
        times = self.pings(body, messages) if kind == "ping-pong" else self.notifications(body, messages)
        ended_ns = time.monotonic_ns()
        METER.end()
        result = {"count": messages, "begun_ns": begun_ns, "ended_ns": ended_ns}
        if times:
            times.sort()
            result |= {"p50_ns": times[len(times) // 2], "p99_ns": times[len(times) * 99 // 100], "max_ns": times[-1]}
        return result

    def notifications(self, body, messages):
        for _ in range(messages):
            self.client.notify("take", body)
        return []

    def pings(self, body, messages):
        times = []
        for _ in range(messages):
            before = time.monotonic_ns()
            self.client.call("ping", body)
            times.append(time.monotonic_ns() - before)
        return times


def say(**facts):
    print(json.dumps(facts), flush=True)


METER = Meter()


def main():
    role, address = sys.argv[1:]
    host, port = address.rsplit(":", 1)
    address = msgpackrpc.Address(host, int(port))
    if role == "receive":
        end = Receiver(address)
        say(ready="{}:{}".format(*end.bound[:2]))
    else:
        end = Sender(address)
        say(ready="")
    for line in sys.stdin:
        words = line.split()
        if words[0] == "cost":
            say(cpu_ns=METER.read())
        else:
            say(**end.run(words[1], int(words[2]), int(words[3])))


if __name__ == "__main__":
    main()
