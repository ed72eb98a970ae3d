"""Celery workers as processes, and what they have done."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from harness.process import die_with_parent, kill_group

PATIENCE_S = 180
FOLDER = Path(__file__).resolve().parent


class Workers:
    """Celery workers as process groups."""

    def __init__(self, environment, directory):
        self.environment = environment
        self.directory = directory
        self.started = []

    def start(self, *options):
        number = len(self.started)
        command = [sys.executable, "-B", "-m", "celery", "-A", "quelea_tasks", "worker"]
        command += ["--loglevel", "WARNING", "--concurrency", "2", "--hostname", f"worker-{number}@localhost"]
        return self.run([*command, "--queues", "plain,ranked", *options], f"worker-{number}")

    def run(self, command, name):
        """Another program of the application, which ends with the workers."""
        log = open(self.directory / f"{name}.log", "wb")
        worker = subprocess.Popen(
            command,
            cwd=FOLDER,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        log.close()
        self.started.append(worker)
        return worker

    def kill(self, worker):
        kill_group(worker.pid)
        worker.wait()

    def stop(self):
        """A warm shutdown for all that still run, and an end for those that do not want to."""
        for worker in self.started:
            if worker.poll() is None:
                worker.send_signal(signal.SIGTERM)
        for worker in self.started:
            try:
                worker.wait(20)
            except subprocess.TimeoutExpired:
                pass
            kill_group(worker.pid)
            worker.wait()

    def logs(self):
        return "\n".join(path.read_text(errors="replace")[-3_000:] for path in sorted(self.directory.glob("*.log")))


def done(effects: Path) -> list[int]:
    """The numbers of the tasks that left their effect, once for each time."""
    return [int(line) for path in effects.iterdir() for line in path.read_bytes().splitlines()]


def wait_for(condition, workers, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S} s\n{workers.logs()}"
        assert any(worker.poll() is None for worker in workers.started), f"all workers ended\n{workers.logs()}"
        time.sleep(0.1)
