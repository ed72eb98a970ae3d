"""Debian's etcd as a process, and what directories are told of it."""

import contextlib
import os
import signal
import subprocess
import tempfile
import urllib.request
from pathlib import Path

from harness.store_tests import run_program
from harness.elastic.broker import wait_for
from harness.ports import free_port
from harness.process import die_with_parent


class Etcd:
    """One etcd on ports and in a directory of its own; `wrapper` runs it elsewhere, where `host` is its address."""

    def __init__(self, host="127.0.0.1", wrapper=()):
        self.directory = tempfile.TemporaryDirectory(prefix="quelea-etcd-")
        client, peer = (f"http://{host}:{free_port()}" for _ in range(2))
        self.endpoint = client
        log = open(Path(self.directory.name) / "log", "wb")
        with log:
            self.process = subprocess.Popen(
                [
                    *wrapper,
                    os.environ["QUELEA_ETCD"],
                    *("--data-dir", f"{self.directory.name}/data", "--unsafe-no-fsync"),
                    *("--listen-client-urls", client, "--advertise-client-urls", client),
                    *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                    *("--initial-cluster", f"default={peer}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,
            )

    def is_healthy(self):
        try:
            with urllib.request.urlopen(f"{self.endpoint}/health", timeout=5) as answer:
                return b"true" in answer.read()
        except OSError:
            assert self.process.poll() is None, (Path(self.directory.name) / "log").read_text()[-2_000:]
            return False

    def settings(self):
        return {
            "QUELEA__ELASTIC__METADATA": "etcd",
            "QUELEA__ELASTIC__ETCD_ENDPOINTS": self.endpoint,
            "QUELEA__ELASTIC__RELAYS_ON_EXIT": "keep",
        }

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def check(self):
        """Runs the store's own tests, which are built beside the broker, and by the same command."""
        run_program(os.environ["QUELEA_ETCD_TESTS"], "etcd_is_a_store", {"QUELEA_ETCD_ENDPOINT": self.endpoint}, "--ignored")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()


@contextlib.contextmanager
def serving(server):
    try:
        wait_for("etcd", server.is_healthy)
        yield server
    finally:
        server.resume()
        server.close()
