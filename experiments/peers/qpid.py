#!/usr/bin/env python3
"""Runs Apache Qpid Broker-J in the foreground, in memory: of the broker family that the AMQP paper measured.

    experiments/peers/qpid.py [--port PORT] [--heap 1g] [--install]

Its jars come from Maven Central, once, into ${QUELEA_CACHE:-~/.cache/quelea}/qpid-*; --install does only that.
When it serves it prints one line, in the form that `quelea serve` uses too:

    qpid ready amqp=127.0.0.1:PORT pid=PID

SIGTERM and Ctrl-C stop it. Only the process that it started is ended, by its number.
"""

import argparse
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from rabbitmq import free_port, speaks_amqp  # noqa: E402

from harness.cache import installed  # noqa: E402
from harness.process import die_with_parent  # noqa: E402

START_S = 120
STOP_S = 30
INSTALL_S = 900


def install():
    """The directory of the jars."""
    pom = HERE / "qpid" / "pom.xml"

    def fetch(directory):
        shutil.copy(pom, directory)
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={directory / 'lib'}"]
        subprocess.run(command, cwd=directory, check=True, timeout=INSTALL_S, stdout=sys.stderr)

    return installed("qpid", [pom], "", fetch) / "lib"


def configuration(port):
    """One virtual host in memory, which `/` is another name of; guest with its password from this machine."""
    users = [{"name": "guest", "type": "managed", "password": "guest"}]
    alias = [{"name": "default", "type": "defaultAlias"}, {"name": "names", "type": "nameAlias"}]
    return {
        "name": "quelea-bench",
        "modelVersion": "9.0",
        "authenticationproviders": [{"name": "plain", "type": "Plain", "secureOnlyMechanisms": [], "users": users}],
        "ports": [{
            "name": "amqp", "port": port, "bindingAddress": "127.0.0.1", "authenticationProvider": "plain",
            "protocols": ["AMQP_0_9_1"], "tcpNoDelay": True, "virtualhostaliases": alias,
        }],
        "virtualhostnodes": [{
            "name": "default", "type": "Memory", "defaultVirtualHostNode": True,
            "virtualHostInitialConfiguration": json.dumps({"type": "Memory"}),
        }],
    }


def start(home, port, heap):
    (home / "initial.json").write_text(json.dumps(configuration(port)))
    # Messages are kept in direct memory, of which it takes two thirds for its own.
    command = ["java", f"-Xmx{heap}", "-XX:MaxDirectMemorySize=4g", f"-DQPID_WORK={home}", "-cp", f"{install()}/*",
               "org.apache.qpid.server.Main", "-st", "Memory", "-icp", home / "initial.json"]
    log = open(home / "log", "ab")
    # A process group of its own: Ctrl-C at the terminal is ours to pass on.
    return subprocess.Popen(command, cwd=home, stdout=log, stderr=log, stdin=subprocess.DEVNULL, process_group=0,
                            preexec_fn=die_with_parent)


def wait_until_it_serves(server, home, port):
    deadline = time.monotonic() + START_S
    while not speaks_amqp(port):
        if server.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"qpid did not start:\n{(home / 'log').read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)


def stop(server):
    server.terminate()
    try:
        server.wait(STOP_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait(STOP_S)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="(default: a free one)")
    parser.add_argument("--heap", default="1g", help="of the Java machine")
    parser.add_argument("--install", action="store_true", help="fetch the jars, start nothing")
    args = parser.parse_args()
    if args.install:
        print(install())
        return
    port = args.port or free_port()
    home = pathlib.Path(tempfile.mkdtemp(prefix="quelea-qpid-"))
    server = None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        server = start(home, port, args.heap)
        wait_until_it_serves(server, home, port)
        print(f"qpid ready amqp=127.0.0.1:{port} pid={server.pid}", flush=True)
        sys.exit(f"qpid ended by itself, with {server.wait()}")
    except KeyboardInterrupt:
        pass
    finally:
        if server is not None:
            stop(server)
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
