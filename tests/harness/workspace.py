"""The workspace's own checks and tests, and the programs that the clients' suites run."""

import functools
import json
import os
import re
import shutil
import threading
import tomllib
from pathlib import Path

from harness import outcome, checked_build
from harness.broker import foreign_broker
from harness.cache import cache_root
from harness.install import InstallError, apt, install_command
from harness.outcome import Outcome
from harness.process import run_group
from harness.suite import Suite

ROOT = Path(__file__).resolve().parents[2]
PRODUCT, EXPERIMENTS = ROOT, ROOT / "experiments"
CONSOLE = ROOT / "console"
PROFILE = "release-lite"
FORMAT_TIMEOUT_S = 120
BUILD_TIMEOUT_S = 2_400
TEST_TIMEOUT_S = 2_400
ETCD_FEATURES = ["quelea-server/etcd", "quelea-elastic-directory/etcd"]
FEATURES = ["quelea-server/cassandra-tls", "quelea-cassandra-store/tls"]
"""With these: all that a suite of `make test` needs; another build with fewer would compile most of it again."""
WELL_KNOWN_TYPES = Path("/usr/include/google/protobuf/descriptor.proto")
"""What etcd's definitions import, and protoc has in another package."""
PROGRAMS = ["--workspace", "--bins", "--example", "worker", "--test", "cassandra", "--test", "cassandra_metadata"]
"""The broker, the examples that are tested, and the tests of what needs another's server. All members are named, as for the
tests, so that dependencies have the same features and are compiled once."""
EXPERIMENTS_PROGRAMS = ["-p", "quelea-bench", "-p", "quelea-stock-exchange"]
ALL_TESTS = ["--workspace", "--lib", "--bins", "--tests"]
ALL_TARGETS = [*ALL_TESTS, "--examples", "--benches"]
DOC_EXAMPLE = re.compile(r"^\s*//[/!] ```|^#\[doc = include_str!", re.MULTILINE)
GIVE_WAY = ["nice", "-n", "10"]
QUICK_CASES = {"QUELEA_SEEDS_MAX": 32, "PROPTEST_CASES": 32}
_building = threading.Lock()
_built: dict[str, Path] = {}


def target_directory() -> Path:
    """Outside the checkout, so that a fresh clone finds its dependencies compiled."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or cache_root() / "target").absolute()
    os.environ["CARGO_TARGET_DIR"] = str(target)
    return target


def run_format() -> Outcome:
    command = ["cargo", "fmt", "--all", "--check"]
    codes = [run_group(command, cwd=workspace, timeout_s=FORMAT_TIMEOUT_S)[0] for workspace in (PRODUCT, EXPERIMENTS)]
    return Outcome(passed=codes.count(0), failed=len(codes) - codes.count(0))


def compile_tests() -> None:
    """With all that is never run, too, for the lints."""
    with _building:
        for workspace in tested_workspaces():
            install_command(
                [*test_command(workspace), *test_features(workspace), *ALL_TARGETS, "--no-run"],
                workspace,
                environment=checked_build.environment(),
                timeout_s=BUILD_TIMEOUT_S,
            )


def tested_workspaces() -> list[Path]:
    return [PRODUCT] if is_quick() else [PRODUCT, EXPERIMENTS]


def test_command(workspace: Path) -> list[str]:
    target_directory()
    return [*checked_build.words("test", workspace, PROFILE), "--no-fail-fast"]


def test_features(workspace: Path) -> list[str]:
    """Those of the broker, so that dependencies are the same."""
    wanted = features() if workspace == PRODUCT and not is_quick() else []
    return [f"--features={feature}" for feature in wanted]


def run_cargo_tests() -> Outcome:
    outcomes = [_run_tests(workspace, *test_features(workspace), *ALL_TESTS) for workspace in tested_workspaces()]
    if not is_quick():
        documented = [word for package in _packages_with_doc_examples() for word in ("-p", package)]
        outcomes.append(_run_tests(PRODUCT, "--doc", *documented))
    return sum(outcomes, start=Outcome())


def _packages_with_doc_examples() -> list[str]:
    """To look for them takes rustdoc a second for each package, and few have any."""
    found = []
    for manifest in sorted(ROOT.glob("crates/**/Cargo.toml")):
        sources = manifest.parent.glob("src/**/*.rs")
        if any(DOC_EXAMPLE.search(source.read_text()) for source in sources):
            found.append(tomllib.loads(manifest.read_text())["package"]["name"])
    return found


def _run_tests(workspace: Path, *words: str) -> Outcome:
    # They compute all the time, while the suites beside them wait for most of theirs and have clients that send heartbeats.
    code, output = run_group(
        [*GIVE_WAY, *test_command(workspace), *words],
        cwd=workspace,
        environment=checked_build.environment() | (QUICK_CASES if is_quick() else {}),
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
    """The broker, or another program of `PROGRAMS`, all of which are compiled when the first is wanted."""
    with _building:
        if not _built:
            _built.update(build_programs())
    return _built[name]


def build_programs() -> dict[str, Path]:
    """All in one command: with other crates beside it a crate has other features, and is compiled again. They are put where
    cargo does not replace them: it calls those of the tests the same."""
    target_directory()
    enabled = features()
    command = ["cargo", "build", "--locked", "--profile", PROFILE, *PROGRAMS]
    command += ["--test", "etcd"] if set(ETCD_FEATURES) <= set(enabled) else []
    command += [f"--features={feature}" for feature in enabled]
    built = build(command, PRODUCT)
    if needs_binary():
        command = ["cargo", "build", "--locked", "--profile", PROFILE, *EXPERIMENTS_PROGRAMS]
        built |= build(command, EXPERIMENTS)
    place = target_directory() / "programs"
    place.mkdir(exist_ok=True)
    for name, path in built.items():
        fresh = place / f"{name}.{os.getpid()}"
        shutil.copy2(path, fresh)
        fresh.rename(place / name)
    return {name: place / name for name in built}


def build(command: list[str], workspace: Path) -> dict[str, Path]:
    print(f"building in the background: {' '.join(command)}", flush=True)
    install_command(command, workspace, timeout_s=BUILD_TIMEOUT_S)
    # Once more, for nothing but the paths.
    return executables(install_command([*command, "--quiet", "--message-format=json"], workspace))


def needs_binary() -> bool:
    return not (os.environ.get("QUELEA_BINARY") or foreign_broker())


@functools.cache
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
    Suite("rust", run_cargo_tests, build=compile_tests),
]
