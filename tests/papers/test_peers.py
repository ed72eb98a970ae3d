"""What a script of the comparisons starts, when the script is killed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness.amqp.peer import until
from harness.process import die_with_parent

PEERS = Path(__file__).resolve().parents[2] / "experiments" / "peers"
LOAD = """
import sys
import peers
peers.run_with_us([sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"])
"""
BROKER = """
import pathlib, sys
import peers
words = "import os, time; print('it ready pid=%d' % os.getpid(), flush=True); time.sleep(600)"
running = peers.Running([sys.executable, "-c", words], {}, pathlib.Path(sys.argv[1]) / "data")
print(running.pid, flush=True)
running.process.wait()
"""


@pytest.mark.parametrize("script", [LOAD, BROKER], ids=["load", "broker"])
def test_it_ends_too(script, tmp_path):
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent,
                          env={**os.environ, "PYTHONPATH": str(PEERS)}) as process:
        started = int(process.stdout.readline())
        assert is_running(started)
        process.kill()
    until(lambda: not is_running(started), "the end of what it had started")


def is_running(pid):
    """Whether it is, and not only waits for its parent to hear of its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
