"""A client's connection by pika's codec alone: every frame that comes is seen, in its order, and nothing is sent that was not
asked for."""

import socket

from pika import frame, spec

TIMEOUT_S = 60
FRAME_MAX = 131_072
PROTOCOL = b"AMQP\x00\x00\x09\x01"
CONTENT = (spec.Basic.Deliver, spec.Basic.Return, spec.Basic.GetOk)


class Lost(Exception):
    """The broker has ended the connection."""


class Content:
    """A method that a message follows."""

    def __init__(self, method):
        self.method, self.properties, self.size, self.body = method, None, 0, b""


class Link:
    """`on_event(channel, method or Content)` sees what comes unasked, and each close."""

    def __init__(self, host, port, vhost, on_event):
        self.on_event = on_event
        self.open_channels: set[int] = set()
        self.is_open = True
        self._buffer = b""
        self._partial: dict[int, Content] = {}
        self._replies: dict[int, list] = {}
        self._socket = socket.create_connection((host, port), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(PROTOCOL)
        self._reply(0)
        # Without the capability `consumer_cancel_notify` no basic.cancel comes.
        properties = {"capabilities": {"consumer_cancel_notify": True, "basic.nack": True, "publisher_confirms": True}}
        self.send(0, spec.Connection.StartOk(properties, "PLAIN", "\0guest\0guest", "en_US"))
        self._reply(0)
        self.send(0, spec.Connection.TuneOk(2_047, FRAME_MAX, 0))
        self.call(0, spec.Connection.Open(vhost))

    def send(self, channel, method, properties=None, body=None):
        data = frame.Method(channel, method).marshal()
        if body is not None:
            data += frame.Header(channel, len(body), properties).marshal()
            data += frame.Body(channel, body).marshal() if body else b""
        try:
            self._socket.sendall(data)
        except OSError:
            # What it said before that is read first.
            pass

    def call(self, channel, method):
        """Its reply; None: the channel was closed instead."""
        self.send(channel, method)
        return self._reply(channel)

    def call_all(self, calls):
        """The replies to calls on channels of their own, all sent before the first is awaited."""
        for channel, method in calls:
            self.send(channel, method)
        return [self._reply(channel) for channel, _ in calls]

    def open_channel(self, channel):
        self.open_channels.add(channel)
        self.call(channel, spec.Channel.Open())

    def read_until(self, condition):
        """Takes in frames until it is true."""
        while not condition():
            self._take(self._read())

    def close(self):
        if self.is_open:
            self.call(0, spec.Connection.Close(200, "", 0, 0))
        self._end()

    def _end(self):
        self.is_open = False
        self.open_channels.clear()
        self._socket.close()

    def _reply(self, channel):
        replies = self._replies.setdefault(channel, [])
        while not replies:
            if channel and channel not in self.open_channels:
                return None
            self._take(self._read())
        return replies.pop(0)

    def _read(self):
        while True:
            used, one = frame.decode_frame(self._buffer)
            if one is not None:
                self._buffer = self._buffer[used:]
                return one
            try:
                data = self._socket.recv(65_536)
            except ConnectionError:
                data = b""
            if not data:
                self._end()
                raise Lost("the broker has closed the socket")
            self._buffer += data

    def _take(self, one):
        channel = one.channel_number
        if isinstance(one, frame.Method):
            if isinstance(one.method, CONTENT):
                self._partial[channel] = Content(one.method)
            else:
                self._take_method(channel, one.method)
        elif isinstance(one, frame.Header):
            content = self._partial[channel]
            content.properties, content.size = one.properties, one.body_size
            self._complete(channel)
        elif isinstance(one, frame.Body):
            self._partial[channel].body += one.fragment
            self._complete(channel)

    def _take_method(self, channel, method):
        if isinstance(method, spec.Connection.Close):
            self.on_event(channel, method)
            self.send(0, spec.Connection.CloseOk())
            self._end()
            raise Lost(method.reply_text)
        if isinstance(method, spec.Channel.Close):
            self.open_channels.discard(channel)
            self.on_event(channel, method)
            self.send(channel, spec.Channel.CloseOk())
        elif isinstance(method, (spec.Basic.Ack, spec.Basic.Nack, spec.Basic.Cancel)):
            self.on_event(channel, method)
        else:
            if isinstance(method, spec.Channel.CloseOk):
                self.open_channels.discard(channel)
            self._replies.setdefault(channel, []).append(method)

    def _complete(self, channel):
        content = self._partial[channel]
        if len(content.body) < content.size:
            return
        del self._partial[channel]
        if isinstance(content.method, spec.Basic.GetOk):
            self._replies.setdefault(channel, []).append(content)
        else:
            self.on_event(channel, content)
