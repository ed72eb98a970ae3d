"""A Celery application: 10,000 tasks, and not an effect is lost though a worker is killed half-way."""

import itertools
import subprocess
import sys

from celery_workers import FOLDER, PATIENCE_S, done, wait_for

TASKS = 10_000


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


def test_quorum_queues_delay_tasks_at_the_broker(workers):
    workers.environment["DELAYED"] = "1"
    script = """
from kombu.transport.native_delayed_delivery import (
    bind_queue_to_native_delayed_delivery_exchange as bind,
    declare_native_delayed_delivery_exchanges_and_queues as declare,
)
from quelea_tasks import app, delayed

with app.connection_for_write() as connection:
    declare(connection, "quorum")
    for queue in app.amqp.queues.values():
        queue.bind(connection.default_channel).declare()
        bind(connection, queue)
for number in range(20):
    delayed.apply_async((number,), countdown=number % 5)
"""
    subprocess.run([sys.executable, "-B", "-c", script], env=workers.environment, cwd=FOLDER, check=True, timeout=60)
    workers.start("--queues", "delayed")
    wait_for(lambda: len(set(done(workers.effects))) == 20, workers, "all effects")


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
    # Each of the worker's two processes takes from the front, the prefetched ones being the only disorder; one of them may be
    # given most of the tasks.
    for priorities in order:
        rises = sum(later > earlier for earlier, later in itertools.pairwise(priorities))
        assert priorities[0] == 9 and rises <= 4, order
    assert min(priorities[-1] for priorities in order) <= 1, order
