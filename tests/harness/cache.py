"""Clients are installed once, outside the checkout, under the hash of what pins them."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

MARK = ".complete"


def cache_root() -> Path:
    """$QUELEA_CACHE, or ~/.cache/quelea."""
    named = os.environ.get("QUELEA_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "quelea"


def installed(name: str, pins: list[Path], salt: str, install: Callable[[Path], None]) -> Path:
    """The directory that `install` filled for exactly these pins.

    `install` may run more than once, never half: the mark is written when it has returned, and a
    directory without its mark is thrown away. It is not renamed afterwards, because virtual
    environments know their own path. A lock keeps two runners apart.
    """
    digest = hashlib.sha256(salt.encode())
    for pin in pins:
        digest.update(pin.name.encode() + b"\0" + pin.read_bytes())
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    directory = root / f"{name}-{digest.hexdigest()[:16]}"
    with open(root / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / MARK).exists():
            if directory.exists():
                shutil.rmtree(directory, onerror=_make_writable)
            directory.mkdir()
            install(directory)
            (directory / MARK).touch()
    return directory


def _make_writable(function, path, _):
    """Go's module cache is read-only."""
    parent = os.path.dirname(path)
    os.chmod(parent, 0o755)
    os.chmod(path, 0o755)
    function(path)
