"""A balancer of HTTP that gives each request to the next of several servers: what a client asks in two requests of one
connection comes to two of them.

A connection that asks for something that this does not take apart (no HTTP, an `Expect`, a body without a length or
beyond every limit) goes to one server as it is, so that tests of such requests see the server's own answer.
"""

import asyncio
import itertools
import threading

from harness.ports import free_port

HOST = "127.0.0.1"
HEAD_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = 4 * 1024 * 1024
"""Beyond what SQS takes."""
CHUNK_BYTES = 64 * 1024
START_TIMEOUT_S = 20
END_OF_HEAD = b"\r\n\r\n"
METHODS = (b"GET", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS")


class Gone(Exception):
    """The other side has closed its connection."""


class RoundRobin:
    """Listens while the block lasts, before servers on these ports of this machine."""

    def __init__(self, ports: list[int]):
        self.port = free_port()
        self._turns = itertools.cycle(ports)
        self._count = len(ports)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="round robin", daemon=True)
        self._server = None

    def __enter__(self) -> "RoundRobin":
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._serve, HOST, self.port, backlog=1_024))
        return self

    def __exit__(self, *_):
        if self._server is not None:
            self._server.close()
        self._call(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_TIMEOUT_S)
        self._loop.close()

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(START_TIMEOUT_S)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(self, _Stream(reader, writer))
        try:
            await connection.run()
        except (Gone, OSError, asyncio.CancelledError):
            pass
        finally:
            connection.close()

    async def connect(self, but_first: int | None = None) -> tuple[int, "_Stream"]:
        """The next server's port, and a connection to it. One that is not there is passed over, as a balancer does that
        looks after its servers."""
        for _ in range(self._count):
            port = but_first if but_first is not None else next(self._turns)
            but_first = None
            try:
                return port, _Stream(*await asyncio.open_connection(HOST, port))
            except OSError:
                continue
        raise Gone("no server is there")

    def next_port(self) -> int:
        return next(self._turns)


class _Stream:
    """One connection, and what was read of it already."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader, self.writer = reader, writer
        self.buffer = bytearray()

    async def fill(self) -> bool:
        """Reads some more. False: the other side has ended."""
        data = await self.reader.read(CHUNK_BYTES)
        self.buffer += data
        return bool(data)

    async def head(self) -> bytes | None:
        """Up to the empty line; None at an end between two heads, or when it is too long."""
        while (end := self.buffer.find(END_OF_HEAD)) < 0:
            if len(self.buffer) > HEAD_BYTES_MAX or not await self.fill():
                return None
        return self.take(end + len(END_OF_HEAD))

    async def exactly(self, count: int) -> bytes:
        while len(self.buffer) < count:
            if not await self.fill():
                raise Gone("in the middle of a body")
        return self.take(count)

    def take(self, count: int) -> bytes:
        taken = bytes(self.buffer[:count])
        del self.buffer[:count]
        return taken

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def is_stale(self) -> bool:
        """Whether a connection that is kept was closed meanwhile."""
        return self.reader.at_eof() or self.writer.is_closing()

    def close(self) -> None:
        self.writer.close()


class _Connection:
    """A client's connection, and those to servers that are kept for it."""

    def __init__(self, balancer: RoundRobin, client: _Stream):
        self.balancer, self.client = balancer, client
        self.servers: dict[int, _Stream] = {}

    async def run(self) -> None:
        while True:
            head = await self.client.head()
            length = None if head is None else body_length(head)
            if length is None:
                return await self._pass_through(head or b"")
            request = head + await self.client.exactly(length)
            port, server = await self._server()
            if not await self._answer(server, request):
                self.servers.pop(port).close()
                if server.buffer:
                    raise Gone("what follows an answer is no answer")
                return

    async def _server(self) -> tuple[int, _Stream]:
        port = self.balancer.next_port()
        server = self.servers.get(port)
        if server is None or server.is_stale():
            self._forget(port)
            port, server = await self.balancer.connect(but_first=port)
            self._forget(port)
            self.servers[port] = server
        return port, server

    def _forget(self, port: int) -> None:
        if (old := self.servers.pop(port, None)) is not None:
            old.close()

    async def _answer(self, server: _Stream, request: bytes) -> bool:
        """Returns whether the connections go on. A client that goes meanwhile is gone for the server too."""
        await server.send(request)
        relaying = asyncio.ensure_future(self._relay(server))
        watching = asyncio.ensure_future(self.client.fill())
        try:
            await asyncio.wait({relaying, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not relaying.done() and not watching.result():
                raise Gone("the client")
            return await relaying
        finally:
            for task in (relaying, watching):
                if not task.done():
                    task.cancel()
            await asyncio.gather(relaying, watching, return_exceptions=True)

    async def _relay(self, server: _Stream) -> bool:
        head = await server.head()
        if head is None:
            raise Gone("the server, before its answer")
        fields = fields_of(head)
        await self.client.send(head)
        status = head.split(b" ", 2)[1]
        if status not in (b"204", b"304"):
            if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
                await self._relay_chunks(server)
            elif b"content-length" in fields:
                await self.client.send(await server.exactly(int(fields[b"content-length"])))
            else:
                await pump(server, self.client)
                return False
        return fields.get(b"connection", b"").lower() != b"close"

    async def _relay_chunks(self, server: _Stream) -> None:
        while True:
            while (end := server.buffer.find(b"\r\n")) < 0:
                if not await server.fill():
                    raise Gone("in the middle of a chunk")
            line = server.take(end + 2)
            size = int(line.split(b";")[0], 16)
            await self.client.send(line + await server.exactly(size + 2))
            if size == 0:
                return

    async def _pass_through(self, head: bytes) -> None:
        """From here on the connection belongs to one server."""
        if not head and not self.client.buffer and self.client.reader.at_eof():
            return
        port, server = await self.balancer.connect()
        self._forget(port)
        self.servers[port] = server
        await server.send(head + self.client.take(len(self.client.buffer)))
        ways = [asyncio.ensure_future(pump(*way)) for way in ((self.client, server), (server, self.client))]
        try:
            # The server's end is the end; a client may only have said all.
            await ways[1]
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    def close(self) -> None:
        for stream in (self.client, *self.servers.values()):
            stream.close()


async def pump(source: _Stream, sink: _Stream) -> None:
    """Until the source's end, which the sink is told."""
    await sink.send(source.take(len(source.buffer)))
    while await source.fill():
        await sink.send(source.take(len(source.buffer)))
    if sink.writer.can_write_eof():
        sink.writer.write_eof()


def body_length(head: bytes) -> int | None:
    """The length of the request's body; None: the server is to see the request as it came."""
    line, fields = head.split(b"\r\n", 1)[0], fields_of(head)
    words = line.split(b" ")
    if len(words) != 3 or words[0] not in METHODS or words[2] != b"HTTP/1.1":
        return None
    if b"expect" in fields or b"upgrade" in fields or b"transfer-encoding" in fields:
        return None
    length = fields.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > BODY_BYTES_MAX:
        return None
    return int(length)


def fields_of(head: bytes) -> dict[bytes, bytes]:
    pairs = (line.split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
    return {name.strip().lower(): value.strip() for name, value in pairs}


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
