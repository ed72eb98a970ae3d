"""A wire on which frames that go one way take so long: two interfaces of one network namespace, joined by a process.

    python3 -m harness.delay_line PORT BRIDGED SECONDS    frames from PORT come out of BRIDGED so much later

It needs nothing of the kernel but packet sockets; netem(8) is not in every kernel. Frames have to be no larger than the
MTU and to have their checksums, so offloads of segmentation and checksums are off on whatever sends to these interfaces.
ARP is not delayed: neighbours that take more than three seconds to answer are given up.
"""

import collections
import select
import socket
import sys
import time

ETH_P_ALL = 3
ETH_P_ARP = b"\x08\x06"
SOL_PACKET = 263
PACKET_IGNORE_OUTGOING = 23
SO_RCVBUFFORCE = 33
FRAME_BYTES_MAX = 65_536
BUFFER_BYTES = 8 * 1024 * 1024
AT_ONCE = 256
"""Frames that are read from one side before the other has its turn."""
READY_LINE = "ready"


def main() -> None:
    port, bridged, delay_s = open_raw(sys.argv[1]), open_raw(sys.argv[2]), float(sys.argv[3])
    held: collections.deque[tuple[float, bytes]] = collections.deque()
    print(READY_LINE, flush=True)
    while True:
        wait_s = max(0.0, held[0][0] - time.monotonic()) if held else None
        readable, _, _ = select.select([port, bridged], [], [], wait_s)
        now = time.monotonic()
        if port in readable:
            for frame in read(port):
                if frame[12:14] == ETH_P_ARP:
                    write(bridged, frame)
                else:
                    held.append((now + delay_s, frame))
        if bridged in readable:
            for frame in read(bridged):
                write(port, frame)
        while held and held[0][0] <= now:
            write(bridged, held.popleft()[1])


def open_raw(interface: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    opened.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    opened.bind((interface, 0))
    opened.setblocking(False)
    return opened


def read(source: socket.socket):
    for _ in range(AT_ONCE):
        try:
            yield source.recv(FRAME_BYTES_MAX)
        except BlockingIOError:
            return


def write(sink: socket.socket, frame: bytes) -> None:
    try:
        sink.send(frame)
    except OSError:
        # As a wire does that is full: whoever sent it sends it again.
        pass


if __name__ == "__main__":
    main()
