"""Clients from their registries, each installed once for what pins it."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

from harness.cache import installed
from harness.process import run_group

TESTS = Path(__file__).resolve().parents[1]
INSTALL_TIMEOUT_S = 900
_apt = threading.Lock()


class InstallError(Exception):
    """A client could not be installed from its registry, or a program not be built."""


def install_command(command, cwd=None, environment=None, timeout_s=INSTALL_TIMEOUT_S) -> str:
    """Runs a command that has to succeed; returns its output."""
    code, output = run_group(command, cwd=cwd, environment=environment, timeout_s=timeout_s, echo=False)
    if code != 0:
        raise InstallError(f"{' '.join(map(str, command))} ended with {code}:\n{output[-4_000:]}")
    return output


def python_environment(name: str, requirements: Path) -> Path:
    """A virtual environment with exactly these requirements."""

    def install(directory: Path) -> None:
        install_command([sys.executable, "-m", "venv", directory])
        install_command(
            [directory / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", requirements]
        )

    return installed(name, [requirements], sys.version + sys.executable, install)


def node_modules(name: str, folder: Path) -> Path:
    pins = [folder / "package.json", folder / "package-lock.json"]

    def install(directory: Path) -> None:
        for pin in pins:
            shutil.copy(pin, directory)
        install_command(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], directory)

    return installed(name, pins, "", install) / "node_modules"


def jars(name: str, pom: Path, program: Path | None = None) -> Path:
    """A directory with `lib`, what the pom names, and `classes`, the program compiled against it."""

    def install(directory: Path) -> None:
        shutil.copy(pom, directory)
        libraries = directory / "lib"
        install_command(["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={libraries}"], directory)
        if program:
            javac(program, libraries, directory / "classes")

    return installed(name, [pom, program] if program else [pom], "", install)


def javac(program: Path, libraries: Path, classes: Path) -> None:
    """Compiles a program. The compiler is a module of Debian's Java runtime, too, which has no command for it."""
    compiler = ["java", "-m", "jdk.compiler/com.sun.tools.javac.Main"]
    # Only the command would know what a `*` means there.
    path = os.pathsep.join(map(str, sorted(libraries.glob("*.jar"))))
    install_command([*compiler, "-encoding", "UTF-8", "-cp", path, "-d", classes, program])


def apt(words: list[str], directory: Path | None = None) -> None:
    """apt-get, once more with fresh lists if it fails: a new machine may have none."""
    command = ["apt-get", "-o", "DPkg::Lock::Timeout=300", *words]
    with _apt:
        try:
            install_command(command, directory)
        except InstallError:
            install_command(["apt-get", "update"])
            install_command(command, directory)


def patch(folder: Path, file: str, old: str, new: str, times: int) -> None:
    text = (folder / file).read_text()
    if text.count(old) != times:
        raise InstallError(f"{file} has {text.count(old)} times {old!r}, not {times}: the client has changed")
    (folder / file).write_text(text.replace(old, new))


def go_version() -> str:
    return subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout
