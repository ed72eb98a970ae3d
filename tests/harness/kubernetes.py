"""The suite of the provider `kubernetes`: a real control plane and Helm from their sources, and a broker with that provider.

Not one of `make test`: the first time it compiles for a quarter of an hour. `make test-kubernetes` runs it.
"""

import os
import shutil
from pathlib import Path

from harness import outcome
from harness.cache import cache_root, installed
from harness.elastic.suites import install_etcd
from harness.install import TESTS, python_environment
from harness.outcome import Outcome
from harness.process import run_group
from harness.suite import Suite, run_pytest
from harness.workspace import BUILD_TIMEOUT_S, PROFILE, ROOT

MODULE = TESTS / "kubernetes" / "go"
PINS = [MODULE / "go.mod", MODULE / "go.sum"]
PROGRAMS = {"kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver", "helm": "helm.sh/helm/v3/cmd/helm"}
COMPILE_TIMEOUT_S = 7_200


def install_control_plane() -> Path:
    """A directory with kube-apiserver and helm, compiled from the pinned modules."""

    def install(directory: Path) -> None:
        go = shutil.which("go") or "/usr/local/go/bin/go"
        module = directory / "module"
        shutil.copytree(MODULE, module)
        for name, package in PROGRAMS.items():
            print(f"compiling {name}, once: this takes many minutes", flush=True)
            # Few at a time: the linker alone takes gigabytes.
            command = [go, "build", "-p", "2", "-trimpath", "-ldflags", "-s -w", "-o", directory / name, package]
            environment = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}
            code, output = run_group(
                command, cwd=module, environment=environment, timeout_s=COMPILE_TIMEOUT_S, echo=False
            )
            if code != 0:
                raise RuntimeError(f"{name} does not compile: go ended with {code}:\n{output[-4_000:]}")

    return installed("kubernetes", PINS, "", install)


def install_python() -> Path:
    """pytest, and YAML for what Helm prints."""
    return python_environment("kubernetes-python", TESTS / "kubernetes" / "requirements.txt")


def build_broker() -> Path:
    """The broker with the provider, in a target directory of its own."""
    named = os.environ.get("QUELEA_BINARY")
    if named:
        return Path(named)
    target = cache_root() / "target-kubernetes"
    command = ["cargo", "build", "--locked", "--profile", PROFILE, "-p", "quelea-server", "--features", "kubernetes"]
    environment = {"CARGO_TARGET_DIR": target}
    code, _ = run_group(command, cwd=ROOT, environment=environment, timeout_s=BUILD_TIMEOUT_S)
    if code != 0:
        raise RuntimeError(f"the broker does not build: {' '.join(command)} ended with {code}")
    return target / PROFILE / "quelea"


def run_unit_tests() -> Outcome:
    """The provider's own tests, which the workspace's leave out with the feature."""
    command = ["cargo", "test", "--locked", "--profile", PROFILE, "-p", "quelea-elastic-directory", "--features", "kubernetes", "--lib"]
    environment = {"CARGO_TARGET_DIR": cache_root() / "target-kubernetes"}
    code, output = run_group(command, cwd=ROOT, environment=environment, timeout_s=BUILD_TIMEOUT_S)
    return outcome.checked(code, outcome.of_cargo(output))


def run_kubernetes() -> Outcome:
    control_plane, etcd, binary = install_control_plane(), install_etcd(), build_broker()
    unit_tests = run_unit_tests()
    return unit_tests + run_pytest(
        install_python() / "bin" / "python",
        "kubernetes",
        QUELEA_BINARY=binary,
        QUELEA_KUBE_APISERVER=control_plane / "kube-apiserver",
        QUELEA_HELM=control_plane / "helm",
        QUELEA_ETCD=etcd,
    )


SUITES = [Suite("kubernetes", run_kubernetes, alone=True)]
