"""What the steps of a report run their commands by, and what is kept of several runs."""

import contextlib
import datetime
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS, TESTS = ROOT / "experiments" / "peers", ROOT / "tests"
sys.path.insert(0, str(PEERS))

from peers import DidNotStart, die_with_parent, quelea  # noqa: E402

STOP_S = 60
"""How long a command may take to end after SIGINT."""
LAST_WORDS_S = 5
"""How long what it said is waited for when it has ended."""


def say(line, end="\n"):
    """On standard error, if anybody is there: a terminal may be closed."""
    with contextlib.suppress(OSError):
        print(line, end=end, file=sys.stderr, flush=True)


class StepFailed(Exception):
    """A step ended without its results; what it said."""


class RunsSpent(Exception):
    """As many runs were made as were asked for, and the step needs more."""


def write_whole(path, text):
    """Whole or not at all."""
    beside = path.with_suffix(path.suffix + ".part")
    beside.write_text(text)
    beside.replace(path)


@dataclass
class Runs:
    """What the runs of a step gave, a file each: a step of several hours goes on with the run that it was at."""

    folder: pathlib.Path
    commit: str
    # How many may still be made; None is any number.
    left: int | None = None
    asked: int = 0
    # What the kept ones took when they were made.
    kept_s: float = 0.0
    # Of all that were asked for, each once.
    commits: list = field(default_factory=list)
    dates: list = field(default_factory=list)

    def of(self, words, make):
        """The report of the run that has this place among the step's and these words, the commit that it is of, and whether it came
        to its end: a kept one, or `make`'s, which says that too."""
        place = self.folder / f"{self.asked}.json"
        self.asked += 1
        try:
            kept = json.loads(place.read_text())
        except (OSError, ValueError):
            kept = {}
        if kept.get("words") == words:
            say(f"    run {self.asked} was made before, of {kept['commit']}")
            self.kept_s += kept.get("seconds", 0.0)
            self.note(kept["commit"], kept.get("date"))
            return kept["report"], kept["commit"], True
        if self.left == 0:
            raise RunsSpent
        began, date = time.monotonic(), datetime.date.today().isoformat()
        report, is_whole = make()
        self.note(self.commit, date)
        if is_whole:
            self.left = None if self.left is None else self.left - 1
            self.folder.mkdir(parents=True, exist_ok=True)
            kept = {"words": words, "commit": self.commit, "date": date, "seconds": time.monotonic() - began, "report": report}
            write_whole(place, json.dumps(kept))
        return report, self.commit, is_whole

    def note(self, commit, date):
        self.commits += [commit] if commit not in self.commits else []
        self.dates += [date] if date and date not in self.dates else []


@dataclass
class Context:
    """Where things are, and how large the run is."""

    quelea: pathlib.Path
    scale: str
    scratch: pathlib.Path
    runs: Runs
    with_peers: bool = True
    # What was run, a line each: the report shows it.
    commands: list = field(default_factory=list)
    # The last line of the last command's standard error.
    said: str = ""

    def beside(self, name):
        """A program that lies beside the broker."""
        return self.quelea.with_name(name)

    def run(self, *words):
        """A command's standard output; its standard error goes to ours, and its last line stays in `said`."""
        words = [str(word) for word in words]
        self.commands.append(" ".join(words))
        say(f"    $ {' '.join(words)}"[:200])
        with tempfile.TemporaryFile("w+", dir=self.scratch) as out:
            # The thread has the pipe to itself: nobody waits to be read while this one waits for the end, nor this one for what a
            # process that outlives the command may still say.
            process = subprocess.Popen(words, stdout=out, stderr=subprocess.PIPE, text=True, errors="replace", cwd=self.scratch,
                                       preexec_fn=lambda: die_with_parent(signal.SIGINT))
            errors = threading.Thread(target=self._pass_on, args=[process.stderr], daemon=True)
            errors.start()
            try:
                process.wait()
            except BaseException:
                # It ends what it has started, which a kill would leave behind.
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(timeout=STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                raise
            errors.join(timeout=LAST_WORDS_S)
            out.seek(0)
            return process.returncode, out.read()

    def _pass_on(self, errors):
        self.said = ""
        with errors:
            for line in errors:
                say(line, end="")
                self.said = line.strip() or self.said

    def ended(self, what, code):
        """Why a command that failed did, as far as it said so."""
        return f"{what} ended with {code}{f': {self.said}' if self.said else ''}"

    def bench(self, command, *options):
        """The JSON report of `quelea bench`."""
        return self._bench(command, *options)[0]

    def kept(self, words, make):
        """As `Runs.of`; the report's commands name a run that was made before, too."""
        asked = len(self.commands)
        report, commit, is_whole = self.runs.of(words, make)
        if len(self.commands) == asked:
            self.commands.append(f"{' '.join(words)}  # made before, of {commit}")
        return report, commit, is_whole

    def kept_bench(self, command, *options):
        """The same as `bench` of a run that starts all that it measures, so that it is as good tomorrow: one that was made before is not
        made again. With the commit that it is of, whether it came to its end, and what is wrong with it. One that lost messages is kept, too: it
        is not made again until one loses none."""
        # Where the program lies does not change what it measures.
        words = [command, *("quelea" if one == self.quelea else str(one) for one in options)]
        report, commit, is_whole = self.kept(words, lambda: self._bench(command, *options))
        return {"judged": None if is_whole else self.said or "it was interrupted", **report, "commit": commit, "is_whole": is_whole}

    def quiet(self):
        """What takes hours says how far it is."""
        return [] if self.scale == "full" else ["--quiet"]

    def _bench(self, command, *options):
        """With whether it ended well; one that did not may have measured something all the same."""
        with tempfile.NamedTemporaryFile(suffix=".json", dir=self.scratch) as report:
            code, _ = self.run(self.quelea, "bench", *command.split(), *options, "--json", report.name)
            text = pathlib.Path(report.name).read_text()
        if not text:
            raise StepFailed(self.ended(f"quelea bench {command}", code))
        report = json.loads(text)
        is_whole = code in (0, 1) and not report.get("interrupted")
        # With a report, 1 says that something is wrong with what was measured.
        return report | ({"judged": self.said} if is_whole and code == 1 else {}), is_whole

    def peers(self, *makers):
        """Those that are here, and the names of those that are not."""
        found, missing = [quelea(self.quelea)], []
        for label, maker in makers:
            peer = maker() if self.with_peers else None
            if peer is None:
                why = "is not on this machine" if self.with_peers else "was not asked for"
                missing.append(f"{label} {why}")
            else:
                found.append(peer)
        return found, missing


@contextlib.contextmanager
def kept_apart(peer, errors):
    """What fails with a peer is an error of the step, which has what it measured of the others. Without Quelea there is nothing to
    hold them beside."""
    try:
        yield
    except (DidNotStart, StepFailed, OSError, subprocess.SubprocessError, json.JSONDecodeError) as failed:
        if peer.name == "quelea":
            raise StepFailed(str(failed)) from failed
        errors.append(f"{peer.label}: {failed}")
