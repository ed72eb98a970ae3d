"""The suites of elastic queues: real relays, directories, etcd, and what is done to them."""

import os
import shutil
import subprocess
from pathlib import Path

from harness import outcome
from harness.cache import installed
from harness.clients import TESTS, _run_pytest, install_command, install_python
from harness.outcome import Outcome
from harness.process import run_group
from harness.workspace import BUILD_TIMEOUT_S, PROFILE, ROOT, build_broker, read, target_directory

TIMEOUT_S = 1_800
WELL_KNOWN_TYPES = Path("/usr/include/google/protobuf/descriptor.proto")
"""What etcd's definitions import, and protoc has in another package."""


def _suite(folder: str):
    def run() -> Outcome:
        return _run_pytest(folder, TIMEOUT_S)

    return run


def run_monitoring() -> Outcome:
    """The monitoring example, as its users build it."""
    target = target_directory()
    command = ["cargo", "build", "--locked", "-p", "quelea-monitoring"]
    code, _ = run_group(command, cwd=ROOT, timeout_s=BUILD_TIMEOUT_S)
    if code != 0:
        raise RuntimeError(f"the example does not build: {' '.join(command)} ended with {code}")
    os.environ["QUELEA_MONITORING"] = str(target / "debug" / "quelea-monitoring")
    return _run_pytest("elastic_monitoring", TIMEOUT_S)


def apt(words: list[str], directory: Path | None = None) -> None:
    """apt-get, once more with fresh lists if it fails: a new machine may have none."""
    if subprocess.run(["apt-get", *words], cwd=directory, check=False).returncode != 0:
        install_command(["apt-get", "update"])
        subprocess.run(["apt-get", *words], cwd=directory, check=True)


def install_etcd() -> Path:
    """Debian's etcd, unpacked and not started; gives its program."""

    def install(directory: Path) -> None:
        apt(["download", "etcd-server"], directory)
        [package] = directory.glob("etcd-server_*.deb")
        install_command(["dpkg", "-x", package, directory])
        package.unlink()

    return installed("etcd", [], "etcd-server", install) / "usr" / "bin" / "etcd"


def build_with_etcd() -> Path:
    """The broker with the feature `etcd`, beside the one without; QUELEA_ETCD_BINARY names one that is there."""
    if named := os.environ.get("QUELEA_ETCD_BINARY"):
        return Path(named)
    if shutil.which("protoc") is None or not WELL_KNOWN_TYPES.exists():
        apt(["install", "--yes", "--no-install-recommends", "protobuf-compiler", "libprotobuf-dev"])
    # In the same target directory, so that most is compiled already. It takes the place of the one without, which is
    # put back: nothing is compiled for that.
    build_broker("--features", "etcd")
    ours = target_directory() / PROFILE / "quelea-etcd"
    shutil.copy2(target_directory() / PROFILE / "quelea", ours)
    build_broker()
    return ours


def run_etcd() -> Outcome:
    environment = {"QUELEA_ETCD": install_etcd(), "QUELEA_ETCD_BINARY": build_with_etcd(), "PYTHONUNBUFFERED": "1"}
    python = install_python() / "bin" / "python"
    command = [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5", TESTS / "elastic_etcd"]
    code, output = run_group(command, cwd=TESTS, environment=environment, timeout_s=TIMEOUT_S)
    return read(code, outcome.of_pytest(output))


SUITES = {
    "elastic_pipes": _suite("elastic_pipes"),
    "elastic_bench": _suite("elastic_bench"),
    "elastic_monitoring": run_monitoring,
    "elastic_relay": _suite("elastic_relay"),
    "elastic_queues": _suite("elastic_queues"),
    "elastic_failover": _suite("elastic_failover"),
    "elastic_etcd": run_etcd,
}
INSTALLS = dict.fromkeys(SUITES, install_python)
