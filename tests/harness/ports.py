"""Ports that no other suite takes, though several run at once on this machine."""

import collections
import random
import socket

PORTS = range(10_240, 32_000)
"""Below the ephemeral ports: a client that retries one of those while nobody listens may connect to itself."""
KEPT = 256
_reservations: collections.deque[socket.socket] = collections.deque()


class NoPort(Exception):
    """The search was given up."""


def free_port(kind=socket.SOCK_STREAM, family=socket.AF_INET, host="127.0.0.1") -> int:
    """A port that is free now, and that no other process is given here while this one lives and asks for few more.

    So a broker that is killed finds its port again.
    """
    for _ in range(200):
        port = random.choice(PORTS)
        if (reservation := _reserve(port)) is None:
            continue
        with socket.socket(family, kind) as probe:
            try:
                probe.bind((host, port))
            except OSError:
                reservation.close()
                continue
        _keep(reservation)
        return port
    raise NoPort(f"no free port between {PORTS.start} and {PORTS.stop}")


def free_udp_port(family=socket.AF_INET, host="127.0.0.1") -> int:
    return free_port(socket.SOCK_DGRAM, family, host)


def _reserve(port: int) -> socket.socket | None:
    """A name without a file, which goes with its process, as a lock; None if somebody has it."""
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        lock.bind(f"\0quelea-test-port-{port}")
    except OSError:
        lock.close()
        return None
    return lock


def _keep(reservation: socket.socket) -> None:
    _reservations.append(reservation)
    if len(_reservations) > KEPT:
        _reservations.popleft().close()
