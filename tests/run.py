#!/usr/bin/env python3
"""Runs Quelea's tests: those of the workspace, then real clients against a started broker.

    tests/run.py                      everything, as `make test` does
    tests/run.py go python            these suites only
    tests/run.py --binary PATH java   against a binary that is already built
    tests/run.py --jobs 1             one suite at a time, each shown while it runs
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
from pathlib import Path

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))

from harness import console, kubernetes, papers, workspace  # noqa: E402
from harness.amqp import management, rabbitmq  # noqa: E402
from harness.amqp import suites as amqp  # noqa: E402
from harness.cassandra import suites as cassandra  # noqa: E402
from harness.cmq import suites as cmq  # noqa: E402
from harness.elastic import suites as elastic  # noqa: E402
from harness.runner import Runner  # noqa: E402
from harness.sqs import suites as sqs  # noqa: E402

FAMILIES = [amqp, management, sqs, cassandra, cmq, elastic, console, papers]
SUITES = {suite.name: suite for suite in [*workspace.SUITES, *(suite for family in FAMILIES for suite in family.SUITES)]}
# What compiles too long for every run, or needs too much memory beside others.
NAMED = [*kubernetes.SUITES, *cassandra.NAMED_SUITES, *elastic.NAMED_SUITES, *rabbitmq.NAMED_SUITES]
NAMED_SUITES = {suite.name: suite for suite in NAMED}


def main() -> int:
    arguments = parse_arguments()
    if arguments.list:
        print("\n".join(SUITES | NAMED_SUITES))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A shell has its background commands ignore it, and tests would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if arguments.binary:
        os.environ["QUELEA_BINARY"] = str(Path(arguments.binary).resolve())
    chosen = dict.fromkeys(arguments.suites or SUITES)
    runner = Runner(arguments.jobs)
    try:
        total = runner.run([(SUITES | NAMED_SUITES)[name] for name in chosen])
    except KeyboardInterrupt:
        return 130
    runner.print_durations()
    print(f"\n{total}")
    return 1 if total.failed or not total.passed else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES | NAMED_SUITES))
    parser.add_argument("--binary", default=os.environ.get("QUELEA_BINARY"), help="the broker; built when not given")
    parser.add_argument("--jobs", type=int, default=2, help="how many suites run at once (2; then up to six while the processors are idle)")
    parser.add_argument("--list", action="store_true", help="names the suites")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.suites if name not in SUITES | NAMED_SUITES]
    if unknown:
        parser.error(f"no such suite: {', '.join(unknown)}; there are {', '.join(SUITES | NAMED_SUITES)}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
