"""Runs a command as a process group that ends with us."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
GRACE_S = 20
"""How long tests that were interrupted may take to end what they started."""
MARK = "QUELEA_TEST_RUN"
_libc = ctypes.CDLL(None, use_errno=True)
_live: set[int] = set()
_stopped = threading.Event()


class Stopped(Exception):
    """The run is being ended, so nothing more is started."""


def die_with_parent(by: signal.Signals = signal.SIGKILL) -> None:
    """For `preexec_fn`: what a test started must not outlive a runner that was killed."""
    _libc.prctl(PR_SET_PDEATHSIG, by)


def run_group(command, *, cwd=None, environment=None, timeout_s: float, echo=True) -> tuple[int, str]:
    """Runs `command`, returns its exit code and its output (stdout and stderr together).

    Past `timeout_s` the whole group is killed and the code is 124, as timeout(1) has it. The group
    is killed in any case at the end, so nothing that the command left in it stays behind.
    """
    if _stopped.is_set():
        raise Stopped(" ".join(map(str, command)))
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **{key: str(value) for key, value in (environment or {}).items()}},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    _live.add(process.pid)
    late = threading.Event()

    def expire():
        late.set()
        end_group(process)

    timer = threading.Timer(timeout_s, expire)
    timer.daemon = True
    timer.start()
    lines = []
    try:
        for raw in process.stdout:
            line = raw.decode(errors="replace")
            lines.append(line)
            if echo:
                sys.stdout.write(line)
                sys.stdout.flush()
        code = process.wait()
    finally:
        timer.cancel()
        kill_group(process.pid)
        process.wait()
        _live.discard(process.pid)
    if late.is_set():
        lines.append(f"\nkilled after {timeout_s:.0f} s\n")
        code = 124
    return code, "".join(lines)


def signal_group(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, number)


def kill_group(leader: int) -> None:
    signal_group(leader, signal.SIGKILL)


def end_group(process: subprocess.Popen) -> None:
    """Interrupts a group, so that its tests end what they have started elsewhere, and kills it after a while."""
    signal_group(process.pid, signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    kill_group(process.pid)


def end_all_groups() -> None:
    """Ends every group that still runs, those of other threads too, and lets no other begin."""
    _stopped.set()
    for leader in list(_live):
        signal_group(leader, signal.SIGINT)
    deadline = time.monotonic() + GRACE_S
    while _live and time.monotonic() < deadline:
        time.sleep(0.05)
    for leader in list(_live):
        kill_group(leader)


def mark_descendants() -> None:
    """From now on `kill_left_behind` knows what this process has started, also by way of others."""
    os.environ[MARK] = str(os.getpid())


def kill_left_behind() -> list[str]:
    """Kills what outlived the test that started it; returns the command lines."""
    mark = f"{MARK}={os.getpid()}".encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(place.name) == os.getpid() or mark not in (place / "environ").read_bytes().split(b"\0"):
                continue
            found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip())
            os.kill(int(place.name), signal.SIGKILL)
    return found
