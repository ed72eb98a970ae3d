"""What boto3's users rely on, against two front-ends that take turns with each request: a part of the suite sqs_python, all
of which, and the other clients' suites, `make test-cassandra` runs."""

import os
import subprocess
import sys

from harness.install import TESTS

FILES = ["test_messages.py", "test_visibility.py", "test_long_polling.py", "test_resources.py"]
TIMEOUT_S = 600


def test_clients_find_at_any_front_end_what_they_did_at_another(settings):
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "quelea_replicated", "--durations=5"]
    run = subprocess.run(
        [sys.executable, "-B", *words, *(f"sqs_python/{file}" for file in FILES)],
        cwd=TESTS,
        env={
            **os.environ,
            **settings,
            "QUELEA_TEST_FRONT_ENDS": "2",
            "QUELEA_TEST_SUITE": "sqs_python",
            "PYTHONPATH": str(TESTS / "sqs_on_cassandra"),
        },
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    print(run.stdout[-3_000:])
    assert run.returncode == 0, run.stdout + run.stderr
