"""The two ends of a transport, each a process that speaks the protocol of the roles (docs/benchmarks/bench.md), and what a run
of both gives."""

import contextlib
import json
import select
import statistics
import subprocess
import sys
from dataclasses import dataclass, field

from peers import die_with_parent

READY_S = 30
RUN_S = 60
"""No run is meant to take more than some seconds; TCP may wait long for what was lost."""
END_S = 5


class RoleError(Exception):
    """An end did not do what it was told."""


class Role:
    """One end's process."""

    def __init__(self, command):
        self.command = [str(word) for word in command]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        preexec_fn=die_with_parent)

    def say(self, line):
        try:
            self.process.stdin.write(line + "\n")
        except BrokenPipeError as error:
            raise RoleError(f"{self.words()}: {self.ended()}") from error

    def hear(self, within_s):
        # One line is one answer and none comes unasked, so nothing waits in the reader's buffer.
        ready, _, _ = select.select([self.process.stdout], [], [], within_s)
        line = self.process.stdout.readline() if ready else None
        if not line:
            why = f"no answer within {within_s} s" if line is None else self.ended()
            raise RoleError(f"{self.words()}: {why}")
        try:
            return json.loads(line)
        except ValueError as error:
            raise RoleError(f"{self.words()}: not JSON: {line.strip()}") from error

    def words(self):
        return " ".join(self.command)

    def ended(self):
        """How it ended; one that only closed its output is made to."""
        try:
            return f"ended with {self.process.wait(END_S)}"
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "closed its output and did not end"

    def end(self):
        # What was not written yet goes to nobody.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


@dataclass
class Run:
    """What both ends say of one run. Times are nanoseconds."""

    messages: int
    received: int
    wall_ns: int
    cpu_send_ns: int
    cpu_receive_ns: int
    sender: dict
    receiver: dict

    @property
    def cpu_ns(self):
        """CPU time of all threads of both ends, a message."""
        return (self.cpu_send_ns + self.cpu_receive_ns) / self.messages


class Pair:
    """A receiver and a sender that found each other."""

    def __init__(self, receiver, sender, address="127.0.0.1:0"):
        """`receiver` and `sender` give a command for an address."""
        self.roles = []
        try:
            self.receiver = Role(receiver(address))
            self.roles.append(self.receiver)
            bound = self.receiver.hear(READY_S)["ready"]
            self.sender = Role(sender(bound))
            self.roles.append(self.sender)
            self.sender.hear(READY_S)
        except BaseException:
            self.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        for role in reversed(self.roles):
            role.end()

    def run(self, kind, size, messages, idle_ms=0):
        """`idle_ms`: when the receiver gives up waiting for what is lost; 0 where nothing is."""
        line = f"run {kind} {size} {messages} {idle_ms}"
        self.receiver.say(line)
        self.receiver.hear(READY_S)
        self.sender.say(line)
        sent = self.sender.hear(RUN_S)
        received = self.receiver.hear(RUN_S)
        for role, said in ((self.sender, sent), (self.receiver, received)):
            role.say("cost")
            said |= role.hear(READY_S)
        last = sent if kind == "ping-pong" else received
        wall_ns = last["ended_ns"] - sent["begun_ns"]
        return Run(messages, received["count"], wall_ns, sent["cpu_ns"], received["cpu_ns"], sent, received)

    def calibrated(self, kind, size, seconds, idle_ms=0, most=50_000_000):
        """How many messages take about so many seconds."""
        messages = 1_000
        while True:
            run = self.run(kind, size, messages, idle_ms)
            taken = max(run.wall_ns / 1e9, 1e-6)
            if taken > seconds / 5 or messages >= most:
                return max(1_000, min(most, int(messages * seconds / taken)))
            messages = min(most, int(messages * min(10, seconds / taken)))


@dataclass
class Spread:
    """A sample of one quantity, as criterion sums it up."""

    values: list = field(repr=False)

    @property
    def mean(self):
        return statistics.fmean(self.values)

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def deviation(self):
        """Standard deviation."""
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0

    @property
    def mad(self):
        """Median of the absolute deviations from the median, scaled to a normal distribution's deviation."""
        middle = self.median
        return 1.4826 * statistics.median(abs(value - middle) for value in self.values)

    @property
    def interval(self):
        """Where the mean lies with 95 % confidence (Student's t)."""
        half = student_95(len(self.values) - 1) * self.deviation / len(self.values) ** 0.5
        return self.mean - half, self.mean + half

    def facts(self):
        low, high = self.interval
        return {"n": len(self.values), "mean": self.mean, "median": self.median, "deviation": self.deviation,
                "mad": self.mad, "mean_95_low": low, "mean_95_high": high, "least": min(self.values),
                "most": max(self.values)}


def student_95(freedom):
    """The 97.5 % quantile of Student's t, by the expansion of Cornish and Fisher; exact to 1 % from 3 degrees on."""
    if freedom < 3:
        return {0: 0.0, 1: 12.706, 2: 4.303}[freedom]
    z = statistics.NormalDist().inv_cdf(0.975)
    return (z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
            + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3))


def warn(text):
    print(text, file=sys.stderr, flush=True)
