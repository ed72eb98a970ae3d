"""The directory's own tests of a metadata store, against a real etcd."""

import os
import subprocess

PATIENCE_S = 300


def test_etcd_does_what_every_store_has_to(etcd):
    """Built beside the broker, and by the same command."""
    command = [os.environ["QUELEA_DIRECTORY_TESTS"], "etcd_is_a_store", "--exact", "--ignored"]
    environment = {**os.environ, "QUELEA_ETCD_ENDPOINT": etcd.endpoint}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    output = run.stdout + run.stderr
    assert run.returncode == 0, output
    # A test of another name is none that fails.
    assert "test etcd_is_a_store ... ok" in output, output
    assert "1 passed; 0 failed; 0 ignored" in output, output
