"""The workspace's own checks and tests, and the programs that the clients' suites run."""

import json
import os
import re
import shutil
import threading
import tomllib
from pathlib import Path

from harness import outcome
from harness.broker import foreign_broker
from harness.cache import cache_root
from harness.install import InstallError, apt, install_command
from harness.outcome import Outcome
from harness.process import run_group
from harness.suite import Suite

ROOT = Path(__file__).resolve().parents[2]
WORKSPACES = PRODUCT, EXPERIMENTS = ROOT, ROOT / "experiments"
CONSOLE = ROOT / "console"
PROFILE = "release-lite"
BUILD_TIMEOUT_S = 2_400
TEST_TIMEOUT_S = 2_400
ETCD_FEATURES = ["quelea-server/etcd", "quelea-elastic-directory/etcd"]
FEATURES = ["quelea-server/cassandra-tls", "quelea-cassandra-store/tls"]
"""With these: all that a suite of `make test` needs; another build with fewer would compile most of it again."""
WELL_KNOWN_TYPES = Path("/usr/include/google/protobuf/descriptor.proto")
"""What etcd's definitions import, and protoc has in another package."""
PROGRAMS = {
    "quelea": ("quelea-server", "--bin", "quelea"),
    "quelea-monitoring": ("quelea-monitoring", "--bin", "quelea-monitoring"),
    "worker": ("quelea-sqs-client", "--example", "worker"),
    "etcd": ("quelea-elastic-directory", "--test", "etcd"),
    "cassandra": ("quelea-cassandra-store", "--test", "cassandra"),
}
"""Where each stands: the broker, the examples that are tested, and the tests of what needs another's server."""
TEST_COMMAND = ["cargo", "test", "--locked", "--no-fail-fast"]
ALL_TESTS = ["--workspace", "--lib", "--bins", "--tests"]
"""Examples are compiled by clippy already."""
DOC_EXAMPLE = re.compile(r"^\s*//[/!] ```", re.MULTILINE)
QUICK_CASES = {"QUELEA_SEEDS": 32, "PROPTEST_CASES": 32}
_building = threading.Lock()
_built: dict[str, Path] = {}


def target_directory() -> Path:
    """Outside the checkout, so that a fresh clone finds its dependencies compiled."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or cache_root() / "target").absolute()
    os.environ["CARGO_TARGET_DIR"] = str(target)
    return target


def run_format() -> Outcome:
    return _cargo(["fmt", "--all", "--check"], timeout_s=120)


def run_clippy() -> Outcome:
    return _cargo(["clippy", "--locked", "--workspace", "--all-targets", "--no-deps", "--", "-D", "warnings"])


def _cargo(words: list[str], workspaces=WORKSPACES, timeout_s=BUILD_TIMEOUT_S) -> Outcome:
    """A command that passes or fails, in each workspace."""
    target_directory()
    codes = [run_group(["cargo", *words], cwd=workspace, timeout_s=timeout_s)[0] for workspace in workspaces]
    return Outcome(passed=codes.count(0), failed=len(codes) - codes.count(0))


def compile_tests() -> None:
    target_directory()
    # A test starts it; since targets are named, cargo would not build it.
    install_command(["cargo", "build", "--locked", "--workspace", "--example", "worker"], ROOT, timeout_s=BUILD_TIMEOUT_S)
    for workspace in [PRODUCT] if is_quick() else WORKSPACES:
        install_command([*TEST_COMMAND, *ALL_TESTS, "--no-run"], workspace, timeout_s=BUILD_TIMEOUT_S)


def run_cargo_tests() -> Outcome:
    outcome = _run_tests(PRODUCT, *ALL_TESTS)
    if is_quick():
        return outcome
    documented = [word for package in _packages_with_doc_examples() for word in ("-p", package)]
    return outcome + _run_tests(EXPERIMENTS, *ALL_TESTS) + _run_tests(PRODUCT, "--doc", *documented)


def _packages_with_doc_examples() -> list[str]:
    """To look for them takes rustdoc a second for each package, and few have any."""
    found = []
    for manifest in sorted(ROOT.glob("crates/**/Cargo.toml")):
        sources = manifest.parent.glob("src/**/*.rs")
        if any(DOC_EXAMPLE.search(source.read_text()) for source in sources):
            found.append(tomllib.loads(manifest.read_text())["package"]["name"])
    return found


def _run_tests(workspace: Path, *words: str) -> Outcome:
    target_directory()
    code, output = run_group(
        [*TEST_COMMAND, *words],
        cwd=workspace,
        environment=QUICK_CASES if is_quick() else {},
        timeout_s=BUILD_TIMEOUT_S + TEST_TIMEOUT_S,
    )
    return outcome.checked(code, outcome.of_cargo(output))


def is_quick() -> bool:
    """Whether this is `make check`."""
    return "QUELEA_QUICK" in os.environ


def ensure_binary() -> None:
    """Builds the broker once, unless QUELEA_BINARY or QUELEA_TEST_URI names one."""
    if needs_binary():
        os.environ["QUELEA_BINARY"] = str(program("quelea"))


def program(name: str) -> Path:
    """One of `PROGRAMS`, all of which are compiled when the first is wanted."""
    with _building:
        if not _built:
            _built.update(build_programs())
    return _built[name]


def build_programs() -> dict[str, Path]:
    """All in one command: with other crates beside it a crate has other features, and is compiled again."""
    target_directory()
    enabled = features()
    wanted = dict(PROGRAMS)
    if not needs_binary():
        del wanted["quelea"]
    if not set(ETCD_FEATURES) <= set(enabled):
        del wanted["etcd"]
    command = ["cargo", "build", "--locked", "--profile", PROFILE]
    for package, *target in wanted.values():
        command += ["-p", package, *target]
    packages = {package for package, *_ in wanted.values()}
    command += [f"--features={feature}" for feature in enabled if feature.split("/")[0] in packages]
    print(f"building in the background: {' '.join(command)}", flush=True)
    install_command(command, ROOT, timeout_s=BUILD_TIMEOUT_S)
    if "quelea" in wanted:
        # Beside it, where `quelea bench` finds it.
        bench = ["cargo", "build", "--locked", "--profile", PROFILE, "-p", "quelea-bench", "-p", "quelea-stock-exchange"]
        install_command(bench, EXPERIMENTS, timeout_s=BUILD_TIMEOUT_S)
    # Once more, for nothing but the paths.
    return executables(install_command([*command, "--quiet", "--message-format=json"], ROOT))


def needs_binary() -> bool:
    return not (os.environ.get("QUELEA_BINARY") or foreign_broker())


def features() -> list[str]:
    """Without etcd's and the console's where what they are made of is not here: then only their suites fail."""
    return FEATURES + etcd_features() + console_features()


def console_features() -> list[str]:
    """Builds the console, whose place cargo reads from the environment; none where there is no Node.js."""
    place = install_command([CONSOLE / "build.sh"]).strip().splitlines()
    if not place or not Path(place[-1]).is_dir():
        print("\n".join(place))
        return []
    os.environ["QUELEA_CONSOLE_DIST"] = place[-1]
    return ["quelea-server/console"]


def etcd_features() -> list[str]:
    try:
        if shutil.which("protoc") is None or not WELL_KNOWN_TYPES.exists():
            apt(["install", "--yes", "--no-install-recommends", "protobuf-compiler", "libprotobuf-dev"])
    except (InstallError, OSError) as error:
        print(f"no protoc, so the broker is built without etcd: {error}")
        return []
    return ETCD_FEATURES


def executables(messages: str) -> dict[str, Path]:
    """What cargo says it has built, by the name of the target."""
    found = {}
    for line in messages.splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("executable"):
            found[message["target"]["name"]] = Path(message["executable"])
    return found


SUITES = [
    Suite("format", run_format, alone=True),
    Suite("clippy", run_clippy, alone=True),
    Suite("rust", run_cargo_tests, build=compile_tests),
]
