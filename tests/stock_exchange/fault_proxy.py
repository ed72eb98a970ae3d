"""A proxy between the exchange's programs and a broker, which does something to one message on its way to whom it is for."""

import contextlib
import socket
import struct
import threading

METHOD, BODY = 1, 3
DELIVER = struct.pack(">HH", 60, 60)
HEAD = struct.Struct(">BHI")
CHUNK = 65_536
REASON = b"CONNECTION_FORCED - broker shutdown"
CLOSED = struct.pack(">HHHB", 10, 50, 320, len(REASON)) + REASON + bytes(4)
CLOSE = HEAD.pack(METHOD, 0, len(CLOSED)) + CLOSED + b"\xce"


class FaultProxy:
    """`fault` is `lose`, `double`, `swap` (with the next of its route) or `close` (the connection, right behind it): of what is
    delivered with the routing key `route`, the message of number `at`, from 0 on. Everything else passes as it is. `done` is
    set when that has happened."""

    def __init__(self, broker, fault: str, route: str, at: int):
        self.broker, self.fault, self.route, self.at = (broker.host, broker.port), fault, route.encode(), at
        self.count, self.done = 0, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"amqp://guest:guest@127.0.0.1:{self.listener.getsockname()[1]}"
        self.sockets, self.threads = [self.listener], []

    def __enter__(self):
        self._run(self._accept)
        return self

    def __exit__(self, *_):
        for one in self.sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self.threads:
            thread.join()

    def _run(self, what, *args):
        def until_closed():
            with contextlib.suppress(OSError):
                what(*args)

        self.threads.append(threading.Thread(target=until_closed))
        self.threads[-1].start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            broker = socket.create_connection(self.broker)
            self.sockets += [client, broker]
            self._run(self._copy, client, broker)
            self._run(self._deliver, broker, client)

    @staticmethod
    def _copy(source, sink):
        while data := source.recv(CHUNK):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)

    def _deliver(self, broker, client):
        """Passes frames on, a message being three of them: the method, the properties, the body."""
        received, message, held = b"", [], b""
        while data := broker.recv(CHUNK):
            received, out = received + data, []
            at = 0
            while len(received) - at >= HEAD.size:
                kind, _, size = HEAD.unpack_from(received, at)
                end = at + HEAD.size + size + 1
                if len(received) < end:
                    break
                frame, at = received[at:end], end
                if not message and not (kind == METHOD and is_delivery(frame, self.route)):
                    out.append(frame)
                    continue
                message.append(frame)
                if kind == BODY:
                    whole, message = b"".join(message), []
                    closes = self.fault == "close" and self.count == self.at
                    whole, held = self._mistreat(whole, held)
                    out.append(whole)
                    if closes:
                        client.sendall(b"".join([*out, CLOSE]))
                        client.shutdown(socket.SHUT_WR)
                        broker.shutdown(socket.SHUT_RDWR)
                        return
            received = received[at:]
            client.sendall(b"".join(out))
        client.shutdown(socket.SHUT_WR)

    def _mistreat(self, message, held):
        """What is passed on, and what is held back until the next."""
        is_chosen, self.count = self.count == self.at, self.count + 1
        if held:
            self.done.set()
            return message + held, b""
        if not is_chosen:
            return message, b""
        if self.fault == "swap":
            return b"", message
        self.done.set()
        return {"double": message * 2, "close": message}.get(self.fault, b""), b""


def is_delivery(frame: bytes, route: bytes) -> bool:
    payload = frame[HEAD.size:-1]
    # The routing key comes last, behind its length.
    return payload.startswith(DELIVER) and payload.endswith(bytes([len(route)]) + route)
