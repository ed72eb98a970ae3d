"""The monitoring example's programs, and hosts that are processes with a /proc of their own."""

import json
import os
import subprocess
from pathlib import Path

from harness.broker import BrokerError
from harness.elastic.broker import wait_for
from harness.process import die_with_parent

MEMORY_KB = 1_000_000
CALM, HIGH = 0.2, 0.95
"""Parts of the memory in use; the aggregators' threshold is 0.9."""
INTERVAL_MS = 50


class Program:
    """One `quelea-monitoring …`; what it says is in two files."""

    def __init__(self, home: Path, broker, *words):
        self.output, self.said = home / "out", home / "err"
        home.mkdir(parents=True)
        command = [os.environ["QUELEA_MONITORING"], words[0], "--directory", broker.elastic, *words[1:]]
        with open(self.output, "wb") as output, open(self.said, "wb") as said:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=said,
                preexec_fn=die_with_parent,
            )

    def wait_until_said(self, words: str):
        """Until it is at work."""

        def looked():
            if self.process.poll() is not None:
                raise BrokerError(f"it ended with {self.process.returncode}: {self.said.read_text()}")
            return words in self.said.read_text()

        wait_for(f"{words!r} from {self.process.args[1]}", looked)
        return self

    def lines(self) -> list[dict]:
        """The alerts so far."""
        return [json.loads(line) for line in self.output.read_text().splitlines() if line.endswith("}")]

    def stop(self) -> int:
        """Asks it to end, and answers its exit code."""
        self.process.terminate()
        try:
            return self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()


class Host:
    """A host of ours: a probe that reads the files that we write."""

    def __init__(self, home: Path, start, name: str, group: str):
        self.name, self.proc = name, home / "proc"
        (self.proc / "net").mkdir(parents=True)
        self.write("stat", "cpu  100 0 0 900 0 0 0 0 0 0\n")
        self.write("net/dev", "Inter-|\n face |\n  eth0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n")
        self.use_memory(CALM)
        words = ["probe", "--host", name, "--group", group, "--interval-ms", INTERVAL_MS, "--proc", self.proc]
        self.probe = start(*words)

    def write(self, name: str, text: str):
        """At once: a probe never reads half of it."""
        partial = self.proc / "partial"
        partial.write_text(text)
        partial.rename(self.proc / name)

    def use_memory(self, part: float):
        available = round(MEMORY_KB * (1 - part))
        self.write("meminfo", f"MemTotal: {MEMORY_KB} kB\nMemAvailable: {available} kB\n")


def hosts_of(alert: dict) -> list[str]:
    return sorted(crossing["host"] for crossing in alert["crossings"])
