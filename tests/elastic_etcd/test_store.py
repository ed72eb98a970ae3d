"""The directory's own tests of a metadata store, against a real etcd."""

from harness.process import run_group
from harness.workspace import BUILD_TIMEOUT_S, ROOT


def test_etcd_does_what_every_store_has_to(etcd):
    """Unoptimized, as the workspace's tests are: what it needs beyond those compiles in a minute or two."""
    command = ["cargo", "test", "--locked", "-p", "quelea-elastic-directory", "--features", "etcd", "--test", "it"]
    command += ["etcd::etcd_is_a_store", "--", "--exact", "--ignored"]
    environment = {"QUELEA_ETCD_ENDPOINT": etcd.endpoint}
    code, output = run_group(command, cwd=ROOT, environment=environment, timeout_s=BUILD_TIMEOUT_S)
    assert code == 0, output
    # A test of another name is none that fails.
    assert "test etcd::etcd_is_a_store ... ok" in output, output
    assert "1 passed; 0 failed; 0 ignored" in output, output
