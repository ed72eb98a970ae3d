"""The suites of elastic queues: real relays, directories, etcd, and what is done to them."""

import os
import shutil
import subprocess
from pathlib import Path

from harness import outcome
from harness.cache import cache_root, installed
from harness.clients import TESTS, _run_pytest, install_command, install_python
from harness.outcome import Outcome
from harness.process import run_group
from harness.workspace import BUILD_TIMEOUT_S, PROFILE, ROOT, read

TIMEOUT_S = 1_800
WELL_KNOWN_TYPES = Path("/usr/include/google/protobuf/descriptor.proto")
"""What etcd's definitions import, and protoc has in another package."""


def _suite(folder: str):
    def run() -> Outcome:
        return _run_pytest(folder, TIMEOUT_S)

    return run


def install_etcd() -> Path:
    """Debian's etcd, unpacked and not started; gives its program."""

    def install(directory: Path) -> None:
        subprocess.run(["apt-get", "download", "etcd-server"], cwd=directory, check=True, capture_output=True)
        [package] = directory.glob("etcd-server_*.deb")
        install_command(["dpkg", "-x", package, directory])
        package.unlink()

    return installed("etcd", [], "etcd-server", install) / "usr" / "bin" / "etcd"


def build_with_etcd() -> Path:
    """The broker with the feature `etcd`, in a target directory of its own; QUELEA_ETCD_BINARY names one that is there."""
    if named := os.environ.get("QUELEA_ETCD_BINARY"):
        return Path(named)
    if shutil.which("protoc") is None or not WELL_KNOWN_TYPES.exists():
        install_command(["apt-get", "install", "--yes", "--no-install-recommends", "protobuf-compiler", "libprotobuf-dev"])
    target = cache_root() / "target-etcd"
    command = ["cargo", "build", "--locked", "--profile", PROFILE, "-p", "quelea-server", "--features", "etcd"]
    code, _ = run_group(command, cwd=ROOT, environment={"CARGO_TARGET_DIR": target}, timeout_s=BUILD_TIMEOUT_S)
    if code != 0:
        raise RuntimeError(f"the broker with etcd does not build: {' '.join(command)} ended with {code}")
    return target / PROFILE / "quelea"


def run_etcd() -> Outcome:
    environment = {"QUELEA_ETCD": install_etcd(), "QUELEA_ETCD_BINARY": build_with_etcd(), "PYTHONUNBUFFERED": "1"}
    python = install_python() / "bin" / "python"
    command = [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5", TESTS / "elastic_etcd"]
    code, output = run_group(command, cwd=TESTS, environment=environment, timeout_s=TIMEOUT_S)
    return read(code, outcome.of_pytest(output))


SUITES = {
    "elastic_relay": _suite("elastic_relay"),
    "elastic_queues": _suite("elastic_queues"),
    "elastic_failover": _suite("elastic_failover"),
    "elastic_etcd": run_etcd,
}
INSTALLS = dict.fromkeys(SUITES, install_python)
