"""How the packages of bindings/ are built from this checkout and tested: once for each version of their sources."""

import os
import sys
from pathlib import Path

from harness.cache import installed
from harness.install import TESTS, install_command, python_environment
from harness.outcome import Outcome
from harness.suite import run_pytest
from harness.workspace import BUILD_TIMEOUT_S, ROOT, target_directory

PINS = TESTS / "cmq_python" / "requirements.txt"
WORKSPACE = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml"]
SKIPPED = {"target", "tests", "benches", "examples", "__pycache__"}


def install_tools() -> Path:
    """pytest, mypy, and what builds the packages."""
    return python_environment("cmq-tools", PINS)


def sources(*places: str) -> list[Path]:
    """The files that a build reads, in a fixed order."""
    files = []
    for place in [*places, *WORKSPACE]:
        path = ROOT / place
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        files += [file for file in found if file.is_file() and not SKIPPED & set(file.relative_to(ROOT).parts)]
    return files


def names(files: list[Path]) -> str:
    return "\n".join(str(file.relative_to(ROOT)) for file in files)


def cargo_environment(family: str) -> dict[str, object]:
    """A place of its own, so that this build and others do not wait for each other, and no family's package takes another's
    library for its own: all are `_core`; and without the long link, as the workspace's profile `release-lite`."""
    return {
        "CARGO_TARGET_DIR": target_directory() / "bindings" / family,
        "CARGO_PROFILE_RELEASE_LTO": "off",
        "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": 16,
    }


def check(manifest: Path, family: str) -> None:
    """Format and lints, which the root workspace's checks do not reach."""
    install_command(["cargo", "fmt", "--manifest-path", manifest, "--check"])
    install_command(
        ["cargo", "clippy", "--quiet", "--manifest-path", manifest, "--all-targets", "--", "-D", "warnings"],
        environment=cargo_environment(family),
        timeout_s=BUILD_TIMEOUT_S,
    )


def install(name: str, folder: str, library: list[str]) -> Path:
    """A virtual environment with the tools, into which `pip install ./FOLDER` put the package. `library` are the
    crates of the workspace that it is made of."""
    tools, family = install_tools(), name.partition("-")[0]
    read_by_it = sources(folder, *library)

    def fill(directory: Path) -> None:
        check(ROOT / folder / "Cargo.toml", family)
        install_command([sys.executable, "-m", "venv", "--without-pip", directory])
        packages = next(tools.glob("lib/python*/site-packages"))
        own = next(directory.glob("lib/python*/site-packages"))
        (own / "tools.pth").write_text(f"{packages}\n")
        # maturin is among the tools, so that nothing is asked of a registry here.
        install_command(
            [tools / "bin" / "python", "-m", "pip", "--python", directory / "bin" / "python", "install", "--quiet"]
            + ["--disable-pip-version-check", "--no-deps", "--no-build-isolation", ROOT / folder],
            environment={**cargo_environment(family), "PATH": f"{tools / 'bin'}:{os.environ['PATH']}"},
            timeout_s=BUILD_TIMEOUT_S,
        )

    return installed(name, read_by_it, names(read_by_it) + str(tools), fill)


def run_tests(installed_at: Path, folder: str, **environment) -> Outcome:
    """Runs the tests of a folder by the Python into which the package was installed."""
    options = ["-o", "faulthandler_timeout=120"]
    return run_pytest(installed_at / "bin" / "python", folder, *options, **environment)
