"""Runs a command as a process group that ends with us."""

import ctypes
import os
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_live: set[int] = set()


def die_with_parent() -> None:
    """For `preexec_fn`: what a test started must not outlive a runner that was killed."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run_group(command, *, cwd=None, environment=None, timeout_s: float, echo=True) -> tuple[int, str]:
    """Runs `command`, answers its exit code and its output (stdout and stderr together).

    Past `timeout_s` the whole group is killed and the code is 124, as timeout(1) has it. The group
    is killed in any case at the end, so nothing that the command left in it stays behind.
    """
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
        kill_group(process.pid)

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


def kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill_all_groups() -> None:
    """Ends every group that still runs, those of other threads too."""
    for leader in list(_live):
        kill_group(leader)
