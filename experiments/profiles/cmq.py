#!/usr/bin/env python3
"""What the CMQ paper checked of its own code: which lines the tests reach, and where the heap of a long run comes from.

    experiments/profiles/cmq.py [--only coverage,heap] [--seconds 60] [--json FILE]

Coverage is that of the tests of the crates quelea-cmq and quelea-cmq-proto, by cargo-llvm-cov. The heap's profile is heaptrack's, of
`quelea bench cmq-soak` built with the system's allocator, which heaptrack sees. Both are compiled below `${QUELEA_CACHE:-~/.cache/quelea}`,
and what they need is installed: cargo-llvm-cov, LLVM's tools in the compiler's version, heaptrack (Debian's packages, as root).
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from harness.cache import cache_root  # noqa: E402
from harness.install import InstallError, apt, install_command  # noqa: E402

LLVM_COV_VERSION = "0.9.1"
TARGET = cache_root() / "profiles-target"
CRATES = ("quelea-cmq", "quelea-cmq-proto")
PEAKS = 12
"""Places of the heap's peak that are printed."""


def llvm_tools():
    """Where cargo-llvm-cov finds llvm-cov and llvm-profdata; nothing if rustup has them."""
    try:
        install_command(["rustup", "component", "add", "llvm-tools"])
        return {}
    except (InstallError, OSError):
        version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
        major = re.search(r"LLVM version: (\d+)", version)[1]
        if not shutil.which(f"llvm-cov-{major}"):
            apt(["install", "-y", "--no-install-recommends", f"llvm-{major}"])
        return {"LLVM_COV": shutil.which(f"llvm-cov-{major}"), "LLVM_PROFDATA": shutil.which(f"llvm-profdata-{major}")}


KINDS = ("lines", "functions", "regions")


def coverage(_):
    tool = cache_root() / f"cargo-llvm-cov-{LLVM_COV_VERSION}"
    if not (tool / "bin" / "cargo-llvm-cov").exists():
        install_command(["cargo", "install", "--locked", "--quiet", "--root", tool, f"cargo-llvm-cov@{LLVM_COV_VERSION}"])
    environment = os.environ | llvm_tools() | {"CARGO_TARGET_DIR": str(TARGET)}
    packages = [word for crate in CRATES for word in ("-p", crate)]
    # Lines of the tests themselves, and of what both crates only use, are not counted.
    command = [tool / "bin" / "cargo-llvm-cov", "llvm-cov", "--locked", "--ignore-filename-regex", r"/(tests|testkit)/|/tests\.rs$|/model/"]
    with tempfile.TemporaryDirectory(prefix="quelea-coverage-") as scratch:
        found = pathlib.Path(scratch) / "coverage.json"
        subprocess.run([*command, "--json", "--summary-only", "--output-path", found, *packages], cwd=ROOT, env=environment, check=True)
        [report] = json.loads(found.read_text())["data"]
    for file in report["files"]:
        lines = file["summary"]["lines"]
        print(f"{lines['percent']:6.1f} % of {lines['count']:6,} lines  {pathlib.Path(file['filename']).relative_to(ROOT)}")
    reached = by_crate(report["files"])
    for crate, kinds in reached.items():
        print(crate, ", ".join(f"{kind} {covered / count:.1%} of {count:,}" for kind, (covered, count) in kinds.items()))
    return reached


def by_crate(files):
    """Of each crate what its tests reach: (reached, of how many), by lines, functions, regions."""
    sums = {}
    for file in files:
        crate = "quelea-cmq-proto" if "/crates/cmq/proto/" in file["filename"] else "quelea-cmq"
        for kind in KINDS:
            covered, count = sums.setdefault(crate, {}).get(kind, (0, 0))
            of_file = file["summary"][kind]
            sums[crate][kind] = (covered + of_file["covered"], count + of_file["count"])
    return sums


def heap(args):
    if not shutil.which("heaptrack"):
        apt(["install", "-y", "--no-install-recommends", "heaptrack"])
    words = ["cargo", "build", "--locked", "--profile", "release-lite", "-p", "quelea-bench", "--no-default-features"]
    words += ["--manifest-path", ROOT / "experiments" / "Cargo.toml", "--target-dir", TARGET]
    subprocess.run(words, check=True)
    with tempfile.TemporaryDirectory(prefix="quelea-heap-") as scratch:
        recorded = pathlib.Path(scratch) / "heap"
        bench = [TARGET / "release-lite" / "quelea-bench", "cmq-soak", "--quiet", "--duration-s", args.seconds]
        subprocess.run(list(map(str, ["heaptrack", "-o", recorded, *bench])), check=True)
        [found] = pathlib.Path(scratch).glob("heap*")
        words = ["--print-leaks", "0", "--print-temporary", "0", "--print-allocators", "0", "-p", "1", "-n", str(PEAKS), "-s", "1", found]
        shown = subprocess.run(["heaptrack_print", *words], capture_output=True, text=True, check=True)
    lines = shown.stdout.splitlines()
    print("\n".join(in_short(lines)))
    places, totals = held_at_peak(lines)
    peak = next(re.search(r"([0-9.]+)([BKMG])", line) for line in totals if line.startswith("peak heap"))
    return {"seconds": args.seconds, "peak_bytes": float(peak[1]) * UNITS[peak[2]], "places": places}


UNITS = {"B": 1, "K": 1e3, "M": 1e6, "G": 1e9}
HELD = re.compile(r"([0-9.]+)([BKMG]) (peak memory )?consumed over .* calls from")


def in_short(lines):
    """What each of our functions holds at the peak, and the totals."""
    places, totals = held_at_peak(lines)
    return [*(f"{size / 1e3:10,.1f} kB  {function}" for function, size in places), *totals]


def held_at_peak(lines):
    """(function, bytes), the largest first, and the lines of totals."""
    places, totals, held = {}, [], None
    for line in lines:
        if found := HELD.search(line):
            # A place of several callers begins with the sum of them.
            held = None if found[3] else float(found[1]) * UNITS[found[2]]
        elif held and "quelea" in line and "::" in line and " in /" not in line:
            function = re.sub(r"::h[0-9a-f]{16}$", "", line.strip())
            places[function] = places.get(function, 0) + held
            held = None
        elif line.startswith(("calls to allocation", "peak heap", "peak RSS", "total memory leaked")):
            totals.append(line)
    return sorted(places.items(), key=lambda place: -place[1])[:PEAKS], totals


PROFILES = {"coverage": coverage, "heap": heap}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(PROFILES), help="which, with commas")
    parser.add_argument("--seconds", type=int, default=60, help="of the run whose heap is looked at")
    parser.add_argument("--json", type=pathlib.Path, help="write what was found there, too")
    args = parser.parse_args()
    wanted = args.only.split(",")
    if unknown := sorted(set(wanted) - set(PROFILES)):
        parser.error(f"--only: no profile {', '.join(unknown)}; there are {', '.join(PROFILES)}")
    found = {name: PROFILES[name](args) for name in wanted}
    if args.json:
        args.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
