"""The suites of CMQ's bindings: how the Python package and the C library are built, and their tests run.

Both are built from this checkout, once for each version of their sources and the library's.
"""

import os
import sys
from pathlib import Path

from harness import outcome
from harness.cache import installed
from harness.clients import TESTS, install_command
from harness.outcome import Outcome
from harness.process import run_group
from harness.workspace import ROOT, read, target_directory

PYTHON_PINS = TESTS / "cmq_python" / "requirements.txt"
LIBRARY = ["crates/cmq", "crates/cmq-proto", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml"]
SKIPPED = {"target", "tests", "benches", "examples", "__pycache__"}


def install_tools() -> Path:
    """pytest, mypy, and what builds the package."""

    def install(directory: Path) -> None:
        install_command([sys.executable, "-m", "venv", directory])
        install_command(
            [directory / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", PYTHON_PINS]
        )

    return installed("cmq-tools", [PYTHON_PINS], sys.version + sys.executable, install)


def _sources(*places: str) -> list[Path]:
    """The files that a build reads, in a fixed order."""
    files = []
    for place in [*places, *LIBRARY]:
        path = ROOT / place
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        files += [file for file in found if file.is_file() and not SKIPPED & set(file.relative_to(ROOT).parts)]
    return files


def _names(files: list[Path]) -> str:
    return "\n".join(str(file.relative_to(ROOT)) for file in files)


def _cargo_environment() -> dict[str, object]:
    """A place of its own, so that this build and the workspace's do not wait for each other; and without
    the long link, as the workspace's profile `release-lite`."""
    return {
        "CARGO_TARGET_DIR": target_directory() / "bindings",
        "CARGO_PROFILE_RELEASE_LTO": "off",
        "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": 16,
    }


def _check(manifest: Path) -> None:
    """Format and lints, which the root workspace's checks do not reach."""
    install_command(["cargo", "fmt", "--manifest-path", manifest, "--check"])
    install_command(
        ["cargo", "clippy", "--quiet", "--manifest-path", manifest, "--all-targets", "--", "-D", "warnings"],
        environment=_cargo_environment(),
    )


def install_package() -> Path:
    """A virtual environment with the tools, into which `pip install ./bindings/python` put the package."""
    tools = install_tools()
    sources = _sources("bindings/python")

    def install(directory: Path) -> None:
        _check(ROOT / "bindings" / "python" / "Cargo.toml")
        install_command([sys.executable, "-m", "venv", "--without-pip", directory])
        packages = next(tools.glob("lib/python*/site-packages"))
        own = next(directory.glob("lib/python*/site-packages"))
        (own / "tools.pth").write_text(f"{packages}\n")
        # maturin is among the tools, so that nothing is asked of a registry here.
        install_command(
            [tools / "bin" / "python", "-m", "pip", "--python", directory / "bin" / "python", "install", "--quiet"]
            + ["--disable-pip-version-check", "--no-deps", "--no-build-isolation", ROOT / "bindings" / "python"],
            environment={**_cargo_environment(), "PATH": f"{tools / 'bin'}:{os.environ['PATH']}"},
        )

    return installed("cmq-python", sources, _names(sources) + str(tools), install)


def install_library() -> Path:
    """A folder with `lib/` and `include/`, as `make -C bindings/c install` leaves it."""
    sources = _sources("bindings/c")

    def install(directory: Path) -> None:
        folder = ROOT / "bindings" / "c"
        _check(folder / "Cargo.toml")
        install_command(["make", "-C", folder, "install", f"PREFIX={directory}"], environment=_cargo_environment())

    return installed("cmq-c", sources, _names(sources), install)


def _run_pytest(folder: str, timeout_s: float, **environment) -> Outcome:
    python = install_package() / "bin" / "python"
    code, output = run_group(
        [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5", "-o", "faulthandler_timeout=120"]
        + [TESTS / folder],
        cwd=TESTS,
        environment={"PYTHONUNBUFFERED": "1", "QUELEA_CMQ_C": install_library(), **environment},
        timeout_s=timeout_s,
    )
    return read(code, outcome.of_pytest(output))


def run_python() -> Outcome:
    return _run_pytest("cmq_python", 600)


def run_c() -> Outcome:
    rust = ["cargo", "test", "--manifest-path", ROOT / "bindings" / "c" / "Cargo.toml"]
    code, output = run_group(rust, environment=_cargo_environment(), timeout_s=900)
    return read(code, outcome.of_cargo(output)) + _run_pytest("cmq_c", 600)


def _install_all() -> None:
    install_package()
    install_library()


SUITES = {"cmq_python": run_python, "cmq_c": run_c}
INSTALLS = {"cmq_python": _install_all, "cmq_c": _install_all}
