"""The suites of CMQ, the datagram queue: the commands, the broker's front, and the bindings for Python and C.

The bindings are built from this checkout, once for each version of their sources and the library's.
"""

from pathlib import Path

from harness import outcome, python_package
from harness.amqp.suites import python_suite
from harness.cache import installed
from harness.install import install_command
from harness.outcome import Outcome
from harness.process import run_group
from harness.python_package import cargo_environment, check, install_tools, names, sources
from harness.suite import Suite
from harness.workspace import BUILD_TIMEOUT_S, ROOT, ensure_binary

LIBRARY = ["crates/cmq/lib", "crates/cmq/proto"]


def build_package() -> Path:
    return python_package.install("cmq-python", "bindings/python", LIBRARY)


def build_library() -> Path:
    """A folder with `lib/` and `include/`, as `make -C bindings/c install` leaves it."""
    read_by_it = sources("bindings/c", *LIBRARY)

    def install(directory: Path) -> None:
        folder = ROOT / "bindings" / "c"
        check(folder / "Cargo.toml", "cmq")
        install_command(
            ["make", "-C", folder, "install", f"PREFIX={directory}"],
            environment=cargo_environment("cmq"),
            timeout_s=BUILD_TIMEOUT_S,
        )

    return installed("cmq-c", read_by_it, names(read_by_it), install)


def build_library_and_tests() -> None:
    build_library()
    run_library_tests("--no-run")


def run_library_tests(*options) -> tuple[int, str]:
    command = ["cargo", "test", "--manifest-path", ROOT / "bindings" / "c" / "Cargo.toml", *options]
    return run_group(command, environment=cargo_environment("cmq"), timeout_s=BUILD_TIMEOUT_S)


def _run_bindings(folder: str) -> Outcome:
    return python_package.run_tests(build_package(), folder, QUELEA_CMQ_C=build_library())


def run_python() -> Outcome:
    return _run_bindings("cmq_python")


def run_c() -> Outcome:
    code, output = run_library_tests()
    return outcome.checked(code, outcome.of_cargo(output)) + _run_bindings("cmq_c")


def _build_all() -> None:
    ensure_binary()
    build_package()
    build_library_and_tests()


SUITES = [
    python_suite("cmq_network", alone=True),
    python_suite("cmq_pipes"),
    python_suite("cmq_front"),
    Suite("cmq_python", run_python, install_tools, _build_all),
    Suite("cmq_c", run_c, install_tools, _build_all),
]
