"""A store's own tests, as one program: each test's name begins with its file's."""

import os
import subprocess

PATIENCE_S = 600


def run_store_tests(prefix: str, environment: dict[str, str], *options: str) -> str:
    """Runs those of replicated queues that are in a file; returns what they printed."""
    return run_program(os.environ["QUELEA_CASSANDRA_TESTS"], prefix, environment, *options)


def run_program(program: str, prefix: str, environment: dict[str, str], *options: str) -> str:
    command = [program, prefix, "--nocapture", *options]
    run = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    output = run.stdout + run.stderr
    assert run.returncode == 0, output
    # Names that match nothing fail nothing.
    assert "test result: ok. 0 passed" not in output, output
    return output
