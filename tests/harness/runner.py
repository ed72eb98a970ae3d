"""Runs suites: what they need is installed and built first, then two run at a time and further ones while the processors are
idle, and those alone that must."""

import json
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass

from harness.cache import cache_root
from harness.outcome import Outcome
from harness.output import captured
from harness.process import end_all_groups, kill_left_behind, mark_descendants
from harness.processors import Idleness, available_bytes
from harness.suite import Suite

DURATIONS = "durations.json"
LANES_MAX = 6
IDLE_ENOUGH = 0.25
"""A further suite runs while at least this part of the processors' time is left, or goes to what gives way to others: many suites
wait for most of their time."""
LOOK_S = 6
"""How long the processors are looked at, and what started last is given to show what it takes."""
BYTES_ENOUGH = 3_000_000_000
"""And this much memory is free: a suite may have a node of Cassandra, or a browser."""


@dataclass
class Result:
    suite: Suite
    outcome: Outcome
    seconds: float


class Runner:
    """`lanes` is how many suites run at once in any case; with one only it is never more."""

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.results: list[Result] = []
        self._installers = ThreadPoolExecutor(max_workers=2)
        # cargo uses all processors by itself, but not while it waits for another cargo's lock.
        self._builders = ThreadPoolExecutor(max_workers=2)
        self._runners = ThreadPoolExecutor(max_workers=max(lanes, LANES_MAX))
        self._ready: dict[str, list[Future]] = {}
        self._builds: list[Future] = []
        self._began = time.monotonic()
        self._built_s = 0.0

    def run(self, suites: list[Suite]) -> Outcome:
        mark_descendants()
        try:
            self._prepare(suites)
            for suite in suites:
                if suite.alone and not suite.build:
                    self._run_now(suite)
            self._run_in_lanes([suite for suite in suites if not suite.alone])
            for suite in suites:
                if suite.alone and suite.build:
                    self._run_now(suite)
        finally:
            self._end()
        return sum((result.outcome for result in self.results), start=Outcome())

    def _prepare(self, suites: list[Suite]) -> None:
        """Registries answer while the compiler works."""
        steps: dict[object, Future] = {}
        for suite in suites:
            for step, pool in ((suite.install, self._installers), (suite.build, self._builders)):
                if step and step not in steps:
                    steps[step] = pool.submit(step)
                    if pool is self._builders:
                        self._builds.append(steps[step])
            self._ready[suite.name] = [steps[step] for step in (suite.install, suite.build) if step]

    def _run_now(self, suite: Suite) -> None:
        """One that is watched."""
        print(f"\n=== {suite.name}", flush=True)
        self._add(self._run(suite))

    def _run_in_lanes(self, suites: list[Suite]) -> None:
        """The longest first, so that none is left over at the end; each as soon as it has what it needs and nothing
        is compiled any more, which would take its time."""
        wait(self._builds)
        self._built_s = time.monotonic() - self._began
        seconds = _last_durations()
        waiting = sorted(suites, key=lambda suite: -seconds.get(suite.name, 0))
        running: set[Future] = set()
        idleness = Idleness()
        while waiting or running:
            for suite in [suite for suite in waiting if all(step.done() for step in self._ready[suite.name])]:
                if self._has_room(len(running), idleness):
                    waiting.remove(suite)
                    running.add(self._runners.submit(self._run, suite, quiet=self.lanes > 1))
                    idleness.restart()
            steps = {step for suite in waiting for step in self._ready[suite.name] if not step.done()}
            done, _ = wait(running | steps, timeout=LOOK_S if waiting else None, return_when=FIRST_COMPLETED)
            for future in done & running:
                running.remove(future)
                self._add(future.result())

    def _has_room(self, running: int, idleness: Idleness) -> bool:
        if running < self.lanes:
            return True
        if self.lanes == 1 or running >= LANES_MAX or idleness.age_s() < LOOK_S:
            return False
        return idleness.share() >= IDLE_ENOUGH and available_bytes() >= BYTES_ENOUGH

    def _run(self, suite: Suite, quiet=False) -> Result:
        """Runs a suite; what it printed is shown when it has ended."""
        started = time.monotonic()
        with captured() if quiet else nullcontext() as printed:
            try:
                for step in self._ready[suite.name]:
                    step.result()
                started = time.monotonic()
                outcome = suite.run()
            except Exception as error:  # a suite that cannot start is a failure, the others still run
                print(f"{type(error).__name__}: {error}")
                outcome = Outcome(failed=1)
        if quiet:
            print(f"\n=== {suite.name}\n{printed.getvalue()}", end="")
        return Result(suite, outcome, time.monotonic() - started)

    def _add(self, result: Result) -> None:
        self.results.append(result)
        print(f"--- {result.suite.name}: {result.outcome} ({result.seconds:.0f} s)", flush=True)

    def _end(self) -> None:
        pools = (self._installers, self._builders, self._runners)
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        end_all_groups()
        for pool in pools:
            pool.shutdown(wait=True)
        for command in kill_left_behind():
            print(f"killed, since it outlived its test: {command}")

    def print_durations(self) -> None:
        """Slowest first, and how long they took beside each other."""
        slowest_first = sorted(self.results, key=lambda result: -result.seconds)
        print(f"\n{'suite':24} {'seconds':>8}")
        for result in slowest_first:
            print(f"{result.suite.name:24} {result.seconds:8.0f}  {result.outcome}")
        print(f"{'all, with what was built':24} {time.monotonic() - self._began:8.0f}")
        print(f"{'until all was built':24} {self._built_s:8.0f}")
        measured = {result.suite.name: round(result.seconds, 1) for result in self.results if not result.outcome.failed}
        _durations().write_text(json.dumps(_last_durations() | measured))


def _durations():
    return cache_root() / DURATIONS


def _last_durations() -> dict[str, float]:
    try:
        return json.loads(_durations().read_text())
    except (OSError, ValueError):
        return {}
