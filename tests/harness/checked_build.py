"""How the workspaces' own tests are compiled: dependencies as those of the broker, so that each is compiled once for both, the
members for a quick compilation with all checks, and clippy's lints by the same compiler run."""

import json
import os
import subprocess
import tomllib
from pathlib import Path

from harness.cache import cache_root

CHECKED = {
    "opt-level": 0,
    "debug": "line-tables-only",
    "strip": "none",
    "debug-assertions": True,
    "overflow-checks": True,
    "codegen-units": 256,
    "incremental": True,
}
"""What members are compiled with. Incremental compilation costs a first run 6 % more, and a file of the broker that has changed a
quarter of the time."""


def words(command: str, workspace: Path, profile: str) -> list[str]:
    """The beginning of a `cargo test` or `cargo build` of tests."""
    return ["cargo", "--config", str(config(workspace, profile)), command, "--locked", "--profile", profile]


def environment() -> dict[str, str]:
    """Of every such command, or all members would be compiled again. Members are compiled by clippy's driver, which is told as
    `cargo clippy` tells it that what a lint says is an error."""
    return {"RUSTC_WORKSPACE_WRAPPER": "clippy-driver", "CLIPPY_ARGS": "-Dwarnings__CLIPPY_HACKERY__"}


def config(workspace: Path, profile: str) -> Path:
    """A file that changes the profile for each member by its name: what is said of `*` would hold for dependencies too."""
    manifest = tomllib.loads((workspace / "Cargo.toml").read_text())
    optimised = manifest["profile"]["dev"]["package"]
    lines = []
    for name in members(workspace):
        # A few are too slow without any optimisation, also in the inner loop.
        settings = CHECKED | {"opt-level": optimised.get(name, {}).get("opt-level", CHECKED["opt-level"])}
        lines.append(f"[profile.{profile}.package.{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    path = cache_root() / f"checked-build-{workspace.name}.toml"
    text = "\n".join(lines) + "\n"
    if not path.exists() or path.read_text() != text:
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(text)
        fresh.rename(path)
    return path


def members(workspace: Path) -> list[str]:
    command = ["cargo", "metadata", "--no-deps", "--locked", "--format-version", "1"]
    done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=True, timeout=120)
    return sorted(package["name"] for package in json.loads(done.stdout)["packages"])
