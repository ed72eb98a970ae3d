#!/usr/bin/env python3
"""Runs Quelea's tests: those of the workspace, then real clients against a started broker.

    tests/run.py                      everything, as `make test` does
    tests/run.py go python            these suites only
    tests/run.py --binary PATH java   against a binary that is already built
    tests/run.py kubernetes           what is only run when it is named, as `make test-kubernetes` does
    tests/run.py --list

To run the client suites against another broker, name it, or another SQS endpoint:
    QUELEA_TEST_URI=amqp://guest:guest@127.0.0.1:5672/ [QUELEA_TEST_HTTP=http://127.0.0.1:15672] tests/run.py python
    QUELEA_TEST_SQS=http://127.0.0.1:9324 tests/run.py sqs_python

What the clients need is installed under ${QUELEA_CACHE:-~/.cache/quelea}, once for each version of the lock files.
"""

import argparse
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))

from harness import (  # noqa: E402
    clients,
    cmq_bindings,
    cmq_clients,
    elastic_bridge,
    elastic_python,
    elastic_suites,
    elastic_zmtp,
    sqs_clients,
    workspace,
)
from harness import kubernetes as kubernetes_suite  # noqa: E402
from harness.outcome import Outcome  # noqa: E402
from harness.process import kill_all_groups  # noqa: E402

SUITES = {
    "format": workspace.run_format,
    "rust": workspace.run_cargo_tests,
    "readme": clients.run_readme,
    "go": clients.run_go,
    "python": clients.run_python,
    "celery": clients.run_celery,
    "javascript": clients.run_javascript,
    "java": clients.run_java,
    "bad_input": clients.run_bad_input,
    "disk_full": clients.run_disk_full,
    "kill": clients.run_kill,
    "cmq_network": clients.run_cmq_network,
    **sqs_clients.SUITES,
    **cmq_clients.SUITES,
    **cmq_bindings.SUITES,
    **elastic_zmtp.SUITES,
    **elastic_bridge.SUITES,
    **elastic_suites.SUITES,
    **elastic_python.SUITES,
}
# What compiles too long for every run.
NAMED_SUITES = kubernetes_suite.SUITES
INSTALLS = clients.INSTALLS | sqs_clients.INSTALLS | cmq_clients.INSTALLS | cmq_bindings.INSTALLS
INSTALLS |= elastic_bridge.INSTALLS | elastic_zmtp.INSTALLS | elastic_suites.INSTALLS | elastic_python.INSTALLS


def main() -> int:
    arguments = parse_arguments()
    if arguments.list:
        print("\n".join(SUITES | NAMED_SUITES))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    chosen = arguments.suites or list(SUITES)
    if arguments.binary:
        os.environ["QUELEA_BINARY"] = str(Path(arguments.binary).resolve())
    total = Outcome()
    installers = ThreadPoolExecutor(max_workers=2)
    try:
        # Registries answer while the compiler works.
        installs = {name: installers.submit(install) for name, install in INSTALLS.items() if name in chosen}
        for name in chosen:
            total += run_suite(name, installs.get(name))
    finally:
        installers.shutdown(wait=False, cancel_futures=True)
        kill_all_groups()
    print(f"\n{total}")
    return 1 if total.failed or not total.passed else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES | NAMED_SUITES))
    parser.add_argument("--binary", default=os.environ.get("QUELEA_BINARY"), help="the broker; built when not given")
    parser.add_argument("--list", action="store_true", help="names the suites")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.suites if name not in SUITES | NAMED_SUITES]
    if unknown:
        parser.error(f"no such suite: {', '.join(unknown)}; there are {', '.join(SUITES | NAMED_SUITES)}")
    return arguments


def run_suite(name: str, install) -> Outcome:
    print(f"\n=== {name}", flush=True)
    started = time.monotonic()
    try:
        if name in INSTALLS:
            workspace.ensure_binary()
        if install is not None:
            install.result()
        outcome = (SUITES | NAMED_SUITES)[name]()
    except Exception as error:  # a suite that cannot start is a failure, the others still run
        print(f"{type(error).__name__}: {error}")
        outcome = Outcome(failed=1)
    print(f"--- {name}: {outcome} ({time.monotonic() - started:.0f} s)", flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
