"""A program in a terminal of its own, whose screen is read and whose keys are pressed. It needs pyte."""

import contextlib
import fcntl
import os
import pty
import select
import struct
import termios
import time

import pyte


class Terminal:
    """The program runs until it ends by itself: `end` waits for that."""

    LINES, COLUMNS = 40, 200

    def __init__(self, command):
        self.child, self.side = pty.fork()
        if self.child == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(command[0], command)
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", self.LINES, self.COLUMNS, 0, 0))
        self.screen = pyte.Screen(self.COLUMNS, self.LINES)
        self.stream = pyte.ByteStream(self.screen)

    def wait_for(self, text):
        """Until it stands on the screen."""
        deadline = time.monotonic() + 120
        while not any(text in line for line in self.screen.display):
            assert time.monotonic() < deadline, "\n".join([f"{text!r} is not in", *self.screen.display])
            if select.select([self.side], [], [], 1)[0]:
                self.stream.feed(os.read(self.side, 65_536))

    def press(self, keys):
        os.write(self.side, keys.encode())

    def end(self):
        """What it exits with; what it still writes is read, or it would wait for that."""
        with contextlib.suppress(OSError):
            while os.read(self.side, 65_536):
                pass
        _, status = os.waitpid(self.child, 0)
        os.close(self.side)
        return os.waitstatus_to_exitcode(status)
