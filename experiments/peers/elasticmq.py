#!/usr/bin/env python3
"""Runs ElasticMQ in the foreground, in memory, as the rival of the SQS front.

    experiments/peers/elasticmq.py [--port PORT] [--account ID] [--heap 4g] [--install]

Its jars come from Maven Central, once, into ${QUELEA_CACHE:-~/.cache/quelea}/elasticmq-*; --install does
only that. When it serves it prints one line, in the form that `quelea serve` uses too:

    elasticmq ready sqs=127.0.0.1:PORT pid=PID

SIGTERM and Ctrl-C stop it. Only the process that it started is ended, by its number.
"""

import argparse
import http.client
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from harness.cache import installed  # noqa: E402
from harness.process import die_with_parent  # noqa: E402

START_S = 120
STOP_S = 30
INSTALL_S = 900

CONFIGURATION = """
include classpath("application.conf")
node-address {{ protocol = http, host = "127.0.0.1", port = {port}, context-path = "" }}
rest-sqs {{ enabled = true, bind-port = {port}, bind-hostname = "127.0.0.1", sqs-limits = strict }}
rest-stats {{ enabled = false }}
aws {{ region = us-east-1, accountId = "{account}" }}
"""


def install():
    """The directory of the jars."""
    pom = HERE / "elasticmq" / "pom.xml"

    def fetch(directory):
        shutil.copy(pom, directory)
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={directory / 'lib'}"]
        subprocess.run(command, cwd=directory, check=True, timeout=INSTALL_S, stdout=sys.stderr)

    return installed("elasticmq", [pom], "", fetch) / "lib"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def speaks_sqs(port):
    """True once it answers ListQueues."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.ListQueues"}
        connection.request("POST", "/", "{}", headers)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def start(home, port, account, heap):
    (home / "custom.conf").write_text(CONFIGURATION.format(port=port, account=account))
    command = ["java", f"-Xmx{heap}", f"-Dconfig.file={home / 'custom.conf'}", "-cp", f"{install()}/*",
               "org.elasticmq.server.Main"]
    log = open(home / "log", "ab")
    # A process group of its own: Ctrl-C at the terminal is ours to pass on.
    return subprocess.Popen(command, cwd=home, stdout=log, stderr=log, stdin=subprocess.DEVNULL, process_group=0,
                            preexec_fn=die_with_parent)


def wait_until_it_serves(server, home, port):
    deadline = time.monotonic() + START_S
    while not speaks_sqs(port):
        if server.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"elasticmq did not start:\n{(home / 'log').read_text(errors='replace')[-2000:]}")
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
    parser.add_argument("--account", default="000000000000", help="the account in queue URLs and ARNs")
    parser.add_argument("--heap", default="4g", help="of the Java machine: 300,000 messages of 2 KiB wait in one of the measurements")
    parser.add_argument("--install", action="store_true", help="fetch the jars, start nothing")
    args = parser.parse_args()
    if args.install:
        print(install())
        return
    port = args.port or free_port()
    home = pathlib.Path(tempfile.mkdtemp(prefix="quelea-elasticmq-"))
    server = None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        server = start(home, port, args.account, args.heap)
        wait_until_it_serves(server, home, port)
        print(f"elasticmq ready sqs=127.0.0.1:{port} pid={server.pid}", flush=True)
        sys.exit(f"elasticmq ended by itself, with {server.wait()}")
    except KeyboardInterrupt:
        pass
    finally:
        if server is not None:
            stop(server)
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
