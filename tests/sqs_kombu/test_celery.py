"""A Celery application on kombu's SQS transport: not an effect is lost though a worker is killed with -9."""

import os
import signal
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

import pytest
from harness.process import die_with_parent, kill_group

TASKS = 600
PATIENCE_S = 180
FOLDER = Path(__file__).resolve().parent

SENDER = f"""
from quelea_sqs_tasks import app, plain, stumbling

with app.producer_or_acquire() as producer:
    for number in range({TASKS}):
        task = stumbling if number % 20 == 0 else plain
        task.apply_async((number,), producer=producer)
"""


class Workers:
    """Celery workers as process groups."""

    def __init__(self, environment, directory):
        self.environment = environment
        self.directory = directory
        self.started = []

    def start(self):
        number = len(self.started)
        command = [sys.executable, "-B", "-m", "celery", "-A", "quelea_sqs_tasks", "worker", "--without-gossip"]
        command += ["--without-mingle", "--loglevel", "WARNING", "--concurrency", "2", "--hostname", f"worker-{number}@localhost"]
        log = open(self.directory / f"worker-{number}.log", "wb")
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


@pytest.fixture
def workers(broker, tmp_path):
    effects = tmp_path / "effects"
    effects.mkdir()
    environment = {
        **os.environ,
        "CELERY_BROKER": f"sqs://test:test@{urllib.parse.urlsplit(broker.sqs).netloc}",
        "TASK_QUEUE": f"celery-{os.getpid()}",
        "EFFECTS": str(effects),
        "PYTHONPATH": str(FOLDER),
        "C_FORCE_ROOT": "1",
    }
    started = Workers(environment, tmp_path)
    started.effects = effects
    yield started
    started.stop()


def done(effects: Path) -> set[int]:
    """The numbers of the tasks that left their effect."""
    return {int(line) for path in effects.iterdir() for line in path.read_bytes().splitlines()}


def wait_for(condition, workers, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S} s\n{workers.logs()}"
        assert any(worker.poll() is None for worker in workers.started), f"all workers ended\n{workers.logs()}"
        time.sleep(0.1)


def test_every_tasks_effect_is_there_though_a_worker_is_killed(workers):
    workers.start()
    victim = workers.start()
    command = [sys.executable, "-B", "-c", SENDER]
    with subprocess.Popen(command, env=workers.environment, cwd=FOLDER, stdin=subprocess.DEVNULL) as sending:
        wait_for(lambda: len(done(workers.effects)) >= TASKS // 3, workers, "the first third")
        workers.kill(victim)
        assert len(done(workers.effects)) < TASKS, "the worker was to be killed half-way"
        workers.start()
        assert sending.wait(PATIENCE_S) == 0
    wait_for(lambda: len(done(workers.effects)) == TASKS, workers, "all effects")
    assert done(workers.effects) == set(range(TASKS))
