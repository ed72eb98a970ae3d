"""The Celery application under test: each task leaves its effect in an append-only file of its worker."""

import os

from celery import Celery
from kombu import Exchange, Queue

app = Celery("quelea_tasks", broker=os.environ["CELERY_BROKER"])
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=8,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"confirm_publish": True},
    task_default_queue="plain",
    task_queues=[
        Queue("plain", Exchange("plain"), routing_key="plain"),
        Queue("ranked", Exchange("ranked"), routing_key="ranked", queue_arguments={"x-max-priority": 10}),
    ],
    task_routes={
        "quelea_tasks.ranked": {"queue": "ranked", "routing_key": "ranked"},
        "quelea_tasks.delayed": {"queue": "delayed", "routing_key": "delayed"},
    },
)
if os.environ.get("DELAYED"):
    # Of a quorum queue Celery has the broker delay tasks, by 28 queues with times to live up to 2^27 seconds.
    app.conf.task_queues = [Queue("delayed", Exchange("delayed", "topic"), routing_key="delayed", queue_arguments={"x-queue-type": "quorum"})]


def leave_effect(number: int) -> None:
    """One write of one line: whole or not at all, whatever signal comes."""
    path = os.path.join(os.environ["EFFECTS"], str(os.getpid()))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, b"%d\n" % number)
    os.close(descriptor)


@app.task
def plain(number):
    leave_effect(number)


@app.task
def delayed(number):
    leave_effect(number)


@app.task
def ranked(number):
    leave_effect(number)


@app.task(bind=True, max_retries=3)
def stumbling(self, number):
    """Fails twice, then works: the retries are messages with an ETA."""
    if self.request.retries < 2:
        raise self.retry(countdown=0.1 * (self.request.retries + 1))
    leave_effect(number)
