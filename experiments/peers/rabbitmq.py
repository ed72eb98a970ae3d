#!/usr/bin/env python3
"""Runs Debian's RabbitMQ in the foreground, apart from any other one on the machine.

    experiments/peers/rabbitmq.py [--dir DIR] [--port PORT] [--http]

Node name, ports, epmd, cookie, data and logs are its own; without --dir they vanish at the end.
When it serves it prints one line, in the form that `quelea serve` uses too:

    rabbitmq ready amqp=127.0.0.1:PORT pid=PID data_dir=DIR

With --http its management API is on, and the line has `http=127.0.0.1:PORT` too.

SIGTERM and Ctrl-C stop it. Only processes that it started are ended, by their numbers.
"""

import argparse
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
START_S = 120
STOP_S = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port, request, beginning):
    """True once what listens at the port answers a request so."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as probe:
            probe.sendall(request)
            return probe.recv(len(beginning)) == beginning
    except OSError:
        return False


def speaks_amqp(port):
    """True once the broker answers the protocol header with connection.start."""
    return answers(port, b"AMQP\x00\x00\x09\x01", b"\x01")


def speaks_http(port):
    return answers(port, b"GET /api/overview HTTP/1.0\r\n\r\n", b"HTTP")


def environment(home, port, epmd_port):
    names = {
        "HOME": home,
        "ERL_EPMD_PORT": epmd_port,
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        # Always the same, so that a second start on a directory finds the data of the first; the
        # port mapper of its own keeps it apart from other nodes.
        "RABBITMQ_NODENAME": "quelea-bench@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": port,
        "RABBITMQ_DIST_PORT": free_port(),
        "RABBITMQ_MNESIA_BASE": home / "data",
        "RABBITMQ_LOG_BASE": home / "log",
        "RABBITMQ_PID_FILE": home / "pid",
        "RABBITMQ_ENABLED_PLUGINS_FILE": home / "plugins",
        "RABBITMQ_CONFIG_FILE": home / "rabbitmq.conf",
        "RABBITMQ_CONF_ENV_FILE": home / "no-environment-file",
    }
    return os.environ | {name: str(value) for name, value in names.items()}


def start(home, port, epmd_port, http_port):
    for name in ("data", "log"):
        (home / name).mkdir(parents=True, exist_ok=True)
    (home / "plugins").write_text("[rabbitmq_management].\n" if http_port else "[].\n")
    # The default configuration but for the disk alarm, which would stop a long fill.
    lines = ["disk_free_limit.absolute = 1GB"]
    if http_port:
        lines += ["management.tcp.ip = 127.0.0.1", f"management.tcp.port = {http_port}"]
    (home / "rabbitmq.conf").write_text("".join(f"{line}\n" for line in lines))
    log = open(home / "log" / "console", "ab")
    # A process group of its own: Ctrl-C at the terminal is ours to pass on.
    return subprocess.Popen(
        [SERVER], env=environment(home, port, epmd_port), cwd=home, stdout=log, stderr=log,
        stdin=subprocess.DEVNULL, process_group=0)


def wait_until_it_serves(server, home, port, http_port):
    deadline = time.monotonic() + START_S
    while not (speaks_amqp(port) and (not http_port or speaks_http(http_port))):
        if server.poll() is not None or time.monotonic() > deadline:
            log = (home / "log" / "console").read_text(errors="replace")
            sys.exit(f"rabbitmq did not start:\n{log[-2000:]}")
        time.sleep(0.1)
    return int((home / "pid").read_text())


def stop(server, pid, epmd_port):
    try:
        os.kill(pid, signal.SIGTERM)
        server.wait(STOP_S)
    except ProcessLookupError:
        server.wait(STOP_S)
    except subprocess.TimeoutExpired:
        os.kill(pid, signal.SIGKILL)
        server.wait(STOP_S)
    # The Erlang runtime leaves its port mapper behind; it listens on our port only.
    subprocess.run(["epmd", "-port", str(epmd_port), "-kill"], check=False, capture_output=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dir", type=pathlib.Path, help="keep data and logs here")
    parser.add_argument("--port", type=int, default=0, help="AMQP port (default: a free one)")
    parser.add_argument("--http", action="store_true", help="with its management API, on a free port")
    args = parser.parse_args()
    if not pathlib.Path(SERVER).exists():
        sys.exit("no RabbitMQ here: apt-get install --no-install-recommends rabbitmq-server")
    home = args.dir or pathlib.Path(tempfile.mkdtemp(prefix="quelea-bench-rabbitmq-"))
    port, epmd_port = args.port or free_port(), free_port()
    http_port = free_port() if args.http else 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = start(home.resolve(), port, epmd_port, http_port)
    pid = server.pid
    try:
        pid = wait_until_it_serves(server, home, port, http_port)
        http = f"http=127.0.0.1:{http_port} " if http_port else ""
        print(f"rabbitmq ready amqp=127.0.0.1:{port} {http}pid={pid} data_dir={home}", flush=True)
        server.wait()
    except KeyboardInterrupt:
        pass
    finally:
        stop(server, pid, epmd_port)
        if args.dir is None:
            shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
