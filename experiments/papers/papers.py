#!/usr/bin/env python3
"""Runs the experiments of the four papers and draws them: report.html and report.json.

    experiments/papers/papers.py --quelea target/release/quelea [--quick | --full] [--only amqp-suite,cmq]

Each step's results are kept in --results (default: ${QUELEA_CACHE:-~/.cache/quelea}/papers-SCALE), and of `eqs`, `stock-exchange` and `bdqs` each run:
what is stopped goes on with the step, or the run, that it was at, and --fresh begins anew. With --only eqs --runs 1 one run is made,
so that five hours need not be five hours on end; the charts have what was made so far. Peers that are not on this machine are named in the report.
With --earlier the report goes on from one that was made elsewhere: the steps that it has whole are not run again.
The commit in the report is that of this checkout if the binary was built in it, else what --commit says.
"""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests")]

import charts  # noqa: E402
import page  # noqa: E402
from context import Context, DidNotStart, Runs, StepFailed, say, write_whole  # noqa: E402
from steps import SCALES, STEPS  # noqa: E402

from harness.cache import cache_root  # noqa: E402
from harness.install import InstallError, node_modules  # noqa: E402


def machine():
    processor = next((line.split(": ")[1] for line in open("/proc/cpuinfo") if line.startswith("model name")), "an unnamed processor")
    return {"processor": processor.strip(), "cores": os.cpu_count(), "kernel": os.uname().release}


def commit_of(quelea):
    """What a binary was built of: this checkout as it is now, if it lies where that is built."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
    if not quelea.resolve().is_relative_to(target):
        return "unknown"
    done = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def run_step(step, args, scratch, runs):
    """What is kept of it. What a step measured before it failed, its own commands have said."""
    context = Context(args.quelea.resolve(), args.scale, scratch, runs, not args.no_peers)
    started, error, results = time.monotonic(), None, None
    try:
        results = step.run(context)
    except (StepFailed, DidNotStart, OSError, subprocess.SubprocessError, json.JSONDecodeError) as failed:
        error = f"{type(failed).__name__}: {failed}"
        say(f"    {error}")
    seconds = time.monotonic() - started + runs.kept_s
    of_runs = {"commit": ", ".join(runs.commits), "date": " and ".join(runs.dates)}
    return {"name": step.name, "scale": args.scale, "with_peers": context.with_peers, **where_and_when(args),
            **{name: found for name, found in of_runs.items() if found}, "seconds": seconds, "commands": context.commands,
            "note": args.note, "error": error, "results": results}


def where_and_when(args):
    return {"date": datetime.date.today().isoformat(), "commit": args.commit, "machine": machine()}


def kept(path):
    """What a step's file has, done or not."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def is_done(found):
    """Whether a step has no more to do: one of which something failed is made again."""
    results = found["results"] or {}
    return found["error"] is None and not results.get("unfinished") and not errors_of(results)


def is_made(found, args):
    """Whether it was made at this scale, with the peers that are asked for, and has no more to do."""
    return bool(found) and found["scale"] == args.scale and (found.get("with_peers", True) or args.no_peers) and is_done(found)


def errors_of(results):
    """What failed in part. Earlier versions kept it with the broker, or its run."""
    of_brokers = [
        f"{name}: {one['error']}" for name, found in results.get("brokers", {}).items()
        for one in (found if isinstance(found, list) else [found]) if one.get("error")
    ]
    return list(dict.fromkeys([*results.get("errors", []), *of_brokers]))


def runs_of(args, step):
    return args.results / "runs" / step.name


def earlier_steps(path, scale):
    """Those that a report has whole, with their charts, by their names."""
    report = json.loads(path.read_text())
    if report["scale"] != scale:
        raise ValueError(f"it is of the scale {report['scale']}, and this one of {scale}")
    # Earlier versions had one date and machine for all steps.
    of_all = {key: report[key] for key in ("date", "machine")}
    charts_of = {step["name"]: [chart for chart in report["charts"] if chart["step"] == step["name"]] for step in report["steps"]}
    return {
        step["name"]: ({**of_all, **step}, charts_of[step["name"]])
        for step in report["steps"] if not step["error"] and not step["unfinished"]
    }


def forget(args, steps):
    """Before the first begins: one that is stopped then goes on with what is new."""
    for step in steps:
        (args.results / f"{step.name}.json").unlink(missing_ok=True)
        shutil.rmtree(runs_of(args, step), ignore_errors=True)


def run_all(args, steps):
    if args.fresh:
        forget(args, steps)
    runs_left = args.runs
    left = {step.name: 0 if step.name in args.earlier else minutes_left(args, step, runs_left) for step in steps}
    for number, step in enumerate(steps, 1):
        path = args.results / f"{step.name}.json"
        found, minutes = kept(path), left.pop(step.name)
        if step.name in args.earlier or is_made(found, args):
            say(f"[{number}/{len(steps)}] {step.title}: done before")
            continue
        say(f"[{number}/{len(steps)}] {step.title}: about {minutes:.1f} min, {minutes + sum(left.values()):.1f} min left in all")
        runs = Runs(runs_of(args, step), args.commit, runs_left)
        with tempfile.TemporaryDirectory(prefix="quelea-papers-") as scratch:
            again = run_step(step, args, pathlib.Path(scratch), runs)
        if again["results"] is None and found and found["scale"] == args.scale:
            # What it measured before it failed stands, with why it is not whole.
            again = {**found, "error": again["error"]}
        found = again
        write_whole(path, json.dumps(found))
        runs_left = runs.left
        if is_made(found, args):
            shutil.rmtree(runs.folder, ignore_errors=True)


def minutes_left(args, step, runs_left):
    if is_made(kept(args.results / f"{step.name}.json"), args):
        return 0
    return step.minutes_left(args.scale, len(list(runs_of(args, step).glob("*.json"))), runs_left)


def report(args, steps):
    # With all that an earlier one has, whichever steps were asked for now.
    made = [one for one in (shown(args, step) for step in STEPS if step in steps or step.name in args.earlier) if one]
    names = {step["name"] for step, _ in made}
    not_made = [
        {"name": step.name, "paper": step.paper, "title": step.title, "minutes": step.minutes[args.scale]}
        for step in STEPS if args.scale in step.minutes and step.name not in names
    ]
    return {**where_and_when(args), "scale": args.scale, "command": " ".join(["experiments/papers/papers.py", *sys.argv[1:]]),
            "steps": [step for step, _ in made], "not_made": not_made, "charts": [chart for _, drawn in made for chart in drawn]}


def shown(args, step):
    """What the report has of a step, and its charts: what was made here if that is whole, else an earlier report's, else what there is."""
    found = kept(args.results / f"{step.name}.json")
    if step.name in args.earlier and not is_made(found, args):
        return args.earlier[step.name]
    if not found:
        return None
    results = found.pop("results") or {}
    drawn = [{"step": step.name, **chart} for chart in charts.of_step(step.name, results)] if results else []
    errors = [found["error"], *errors_of(results)]
    return {**found, "paper": step.paper, "versions": versions(results), "title": step.title, "missing": results.get("missing", []), "unfinished": results.get("unfinished"),
            "error": "; ".join(filter(None, errors)) or None}, drawn


def versions(results):
    """Brokers as they call themselves."""
    said = [one.get("broker") for one in results.get("brokers", {}).values() if isinstance(one, dict)]
    return [one for one in said if one]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quelea", required=True, type=pathlib.Path, help="the binary, with quelea-bench and stock-exchange beside it")
    scale = parser.add_mutually_exclusive_group()
    for name in SCALES:
        scale.add_argument(f"--{name}", dest="scale", action="store_const", const=name)
    parser.set_defaults(scale="quick")
    parser.add_argument("--only", help="steps, with commas")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--earlier", type=pathlib.Path, help="a report.json of the same scale, made on another machine, whose steps stand")
    parser.add_argument("--fresh", action="store_true", help="run again what was run before")
    parser.add_argument("--runs", type=int, help="of amqp-suite, stock-exchange, eqs or bdqs, make as many runs at most, and end; the next call goes on")
    parser.add_argument("--commit", help="what --quelea was built of, where that is not this checkout")
    parser.add_argument("--note", help="how these steps are run, for the report: what else the machine does")
    parser.add_argument("--no-peers", action="store_true")
    args = parser.parse_args()
    steps = [step for step in STEPS if args.scale in step.minutes]
    if args.only:
        wanted = args.only.split(",")
        unknown = sorted(set(wanted) - {step.name for step in steps})
        if unknown:
            parser.error(f"--only: no step {', '.join(unknown)} at this scale; there are {', '.join(step.name for step in steps)}")
        steps = [step for step in steps if step.name in wanted]
    if args.runs is not None and args.runs < 0:
        parser.error(f"--runs takes 0 or more, and not {args.runs}")
    if args.runs is not None and not all(step.runs for step in steps):
        whole = ", ".join(step.name for step in steps if not step.runs)
        parser.error(f"--runs: {whole} cannot be made by a run at a time; name others by --only")
    if args.fresh and args.earlier:
        parser.error("--fresh and --earlier: one runs again what the other has")
    try:
        args.earlier = earlier_steps(args.earlier, args.scale) if args.earlier else {}
    except (OSError, ValueError, KeyError, TypeError) as unusable:
        parser.error(f"--earlier: {args.earlier} is no report to go on from: {unusable!r}")
    programs = [args.quelea, args.quelea.with_name(f"{args.quelea.name}-bench")]
    programs += [args.quelea.with_name("stock-exchange")] if any(step.name == "stock-exchange" for step in steps) else []
    for program in programs:
        if not program.exists():
            parser.error(f"--quelea: there is no {program}")
    args.commit = args.commit or commit_of(args.quelea)
    args.results = args.results or cache_root() / f"papers-{args.scale}"
    return args, steps


def main():
    args, steps = parse()
    args.results.mkdir(parents=True, exist_ok=True)
    try:
        # Before hours of which the report would then not be drawn.
        uplot = node_modules("papers", HERE) / "uplot" / "dist"
    except (InstallError, OSError) as failed:
        sys.exit(f"what draws the charts cannot be installed: {failed}")
    # A shell has its background commands ignore it, and what is started here would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # As Ctrl-C: the report is made of what there is. Who began it with nohup wants it to go on without a terminal.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        run_all(args, steps)
    except KeyboardInterrupt:
        say("stopped: the same command goes on from here")
    made = report(args, steps)
    write_whole(args.results / "report.json", json.dumps(made, indent=1, ensure_ascii=False))
    write_whole(args.results / "report.html", page.write(made, uplot))
    print(args.results / "report.html")
    whole = {step["name"] for step in made["steps"] if not step["error"] and not step["unfinished"]}
    return 0 if whole >= {step.name for step in steps} else 1


if __name__ == "__main__":
    sys.exit(main())
