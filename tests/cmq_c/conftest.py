"""Programs in C against the library that was installed."""

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
TIMEOUT_S = 120


@pytest.fixture(scope="session")
def installed():
    """Where the library, its header and its pkg-config file are."""
    return Path(os.environ["QUELEA_CMQ_C"])


@pytest.fixture(scope="session")
def compiled(installed, tmp_path_factory):
    """`compiled(source)` is the program; `compiled(source, "static")` the one without the shared library."""
    folder = tmp_path_factory.mktemp("programs")

    def pkg_config(*words):
        # The prefix is where it was asked to be installed, so its own answer must do.
        environment = {**os.environ, "PKG_CONFIG_PATH": str(installed / "lib" / "pkgconfig")}
        asked = subprocess.run(
            ["pkg-config", *words, "quelea-cmq"], env=environment, capture_output=True, text=True, check=True
        )
        return asked.stdout.split()

    def compile(source, how="shared", compiler="gcc", standard="c11"):
        program = folder / f"{source.stem}-{how}-{compiler}"
        if not program.exists():
            libraries = pkg_config("--libs")
            if how == "static":
                libraries = [installed / "lib" / "libquelea_cmq.a", *pkg_config("--libs", "--static")[2:]]
            else:
                libraries.append(f"-Wl,-rpath,{installed / 'lib'}")
            command = [compiler, f"-std={standard}", *WARNINGS, "-g", "-O1", "-pthread", *pkg_config("--cflags")]
            built = subprocess.run(
                [*command, source, "-o", program, *libraries], capture_output=True, text=True, check=False
            )
            assert built.returncode == 0, built.stderr
        return program

    return compile


@pytest.fixture
def run():
    """Runs a program that shall end well; answers what it printed."""

    def run(*command, **options):
        ended = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            **options,
        )
        assert ended.returncode == 0, f"{ended.returncode}: {ended.stdout}{ended.stderr}"
        return ended.stdout

    return run
