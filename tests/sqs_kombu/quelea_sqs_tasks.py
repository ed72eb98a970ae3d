"""The Celery application under test, on kombu's SQS transport: each task leaves its effect in a file of its worker."""

import os

from celery import Celery

app = Celery("quelea_sqs_tasks", broker=os.environ["CELERY_BROKER"])
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=4,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    worker_enable_remote_control=False,
    task_default_queue=os.environ["TASK_QUEUE"],
    broker_transport_options={
        "region": "us-east-1",
        "is_secure": False,
        # What a killed worker held comes back after this; what a living one holds is done long before.
        "visibility_timeout": 10,
        "wait_time_seconds": 5,
        "polling_interval": 0.1,
    },
)


def leave_effect(number: int) -> None:
    """One write of one line: whole or not at all, whatever signal comes."""
    path = os.path.join(os.environ["EFFECTS"], str(os.getpid()))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, b"%d\n" % number)
    os.close(descriptor)


@app.task
def plain(number):
    leave_effect(number)


@app.task(bind=True, max_retries=3)
def stumbling(self, number):
    """Fails once, then works: the retry is a message with a delay."""
    if self.request.retries < 1:
        raise self.retry(countdown=1)
    leave_effect(number)
