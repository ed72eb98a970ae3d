"""The suites of CMQ's bindings: how the Python package and the C library are built, and their tests run.

Both are built from this checkout, once for each version of their sources and the library's.
"""

from pathlib import Path

from harness import outcome, python_package
from harness.cache import installed
from harness.clients import install_command
from harness.outcome import Outcome
from harness.process import run_group
from harness.python_package import cargo_environment, check, names, sources
from harness.workspace import ROOT, read

LIBRARY = ["crates/cmq/lib", "crates/cmq/proto"]


def install_package() -> Path:
    return python_package.install("cmq-python", "bindings/python", LIBRARY)


def install_library() -> Path:
    """A folder with `lib/` and `include/`, as `make -C bindings/c install` leaves it."""
    read_by_it = sources("bindings/c", *LIBRARY)

    def install(directory: Path) -> None:
        folder = ROOT / "bindings" / "c"
        check(folder / "Cargo.toml")
        install_command(["make", "-C", folder, "install", f"PREFIX={directory}"], environment=cargo_environment())

    return installed("cmq-c", read_by_it, names(read_by_it), install)


def _run_pytest(folder: str, timeout_s: float) -> Outcome:
    return python_package.run_pytest(install_package(), folder, timeout_s, QUELEA_CMQ_C=install_library())


def run_python() -> Outcome:
    return _run_pytest("cmq_python", 600)


def run_c() -> Outcome:
    rust = ["cargo", "test", "--manifest-path", ROOT / "bindings" / "c" / "Cargo.toml"]
    code, output = run_group(rust, environment=cargo_environment(), timeout_s=900)
    return read(code, outcome.of_cargo(output)) + _run_pytest("cmq_c", 600)


def _install_all() -> None:
    install_package()
    install_library()


SUITES = {"cmq_python": run_python, "cmq_c": run_c}
INSTALLS = {"cmq_python": _install_all, "cmq_c": _install_all}
