"""A Celery application: 10,000 tasks, and not an effect is lost though a worker is killed half-way."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness.process import die_with_parent, kill_group

TASKS = 10_000
PATIENCE_S = 180
FOLDER = Path(__file__).resolve().parent


class Workers:
    """Celery workers as process groups."""

    def __init__(self, environment, directory):
        self.environment = environment
        self.directory = directory
        self.started = []

    def start(self):
        number = len(self.started)
        command = [sys.executable, "-B", "-m", "celery", "-A", "quelea_tasks", "worker"]
        command += ["--loglevel", "WARNING", "--concurrency", "2", "--hostname", f"worker-{number}@localhost"]
        command += ["--queues", "plain,ranked"]
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


@pytest.fixture
def workers(broker, tmp_path):
    effects = tmp_path / "effects"
    effects.mkdir()
    environment = {
        **os.environ,
        "CELERY_BROKER": broker.uri(),
        "EFFECTS": str(effects),
        "PYTHONPATH": str(FOLDER),
        "C_FORCE_ROOT": "1",
    }
    started = Workers(environment, tmp_path)
    started.effects = effects
    yield started
    started.stop()


def done(effects: Path) -> list[int]:
    """The numbers of the tasks that left their effect, once for each time."""
    return [int(line) for path in effects.iterdir() for line in path.read_bytes().splitlines()]


def wait_for(condition, workers, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S} s\n{workers.logs()}"
        assert any(worker.poll() is None for worker in workers.started), f"all workers ended\n{workers.logs()}"
        time.sleep(0.1)


def sender(environment):
    """Sends the tasks from a process of its own, since an application keeps its broker for life."""
    script = f"""
import datetime
import quelea_tasks
from quelea_tasks import plain, ranked, stumbling

soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=5)
with quelea_tasks.app.producer_or_acquire() as producer:
    for number in range({TASKS}):
        match number % 10:
            case 0:
                stumbling.apply_async((number,), producer=producer)
            case 1:
                plain.apply_async((number,), producer=producer, countdown=number % 7)
            case 2:
                plain.apply_async((number,), producer=producer, eta=soon)
            case 3 | 4 | 5:
                ranked.apply_async((number,), producer=producer, priority=number % 11)
            case _:
                plain.apply_async((number,), producer=producer)
"""
    return subprocess.Popen([sys.executable, "-B", "-c", script], env=environment, cwd=FOLDER, stdin=subprocess.DEVNULL)


def test_every_tasks_effect_is_there_though_a_worker_is_killed(workers):
    workers.start()
    victim = workers.start()
    with sender(workers.environment) as sending:
        wait_for(lambda: len(done(workers.effects)) >= TASKS // 2, workers, "the first half")
        workers.kill(victim)
        assert len(set(done(workers.effects))) < TASKS, "the worker was to be killed half-way"
        workers.start()
        assert sending.wait(PATIENCE_S) == 0
    wait_for(lambda: len(set(done(workers.effects))) == TASKS, workers, "all effects")
    assert set(done(workers.effects)) == set(range(TASKS))


def test_higher_priorities_are_worked_off_first(workers):
    script = """
from quelea_tasks import ranked
for number in range(100):
    ranked.apply_async((number,), priority=number % 10)
"""
    subprocess.run([sys.executable, "-B", "-c", script], env=workers.environment, cwd=FOLDER, check=True, timeout=60)
    workers.start()
    wait_for(lambda: len(set(done(workers.effects))) == 100, workers, "all effects")
    order = [[int(line) % 10 for line in path.read_bytes().splitlines()] for path in workers.effects.iterdir()]
    # Each of the worker's two processes takes from the front; the prefetched ones are the only disorder.
    for priorities in order:
        assert priorities[0] == 9 and priorities[-1] <= 1, order
