"""The example and a program that calls every function: compiled without a warning, run, and run under valgrind."""

import re
import shutil
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parents[1] / "bindings" / "c" / "examples" / "send_receive.c"
API = HERE / "api.c"
# Memory that the threads of a library leave when the process ends is reachable, and no leak.
VALGRIND = ["valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]
VALGRIND += ["--error-exitcode=99", "--fair-sched=yes"]

needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")


@pytest.mark.parametrize("how", ["shared", "static"])
def test_the_example_sends_and_receives(compiled, run, how):
    printed = run(compiled(EXAMPLE, how))
    assert re.fullmatch(r"10000 messages in \d+ datagrams\n", printed)


@pytest.mark.parametrize("how", ["shared", "static"])
def test_every_function_does_what_the_header_says(compiled, run, how):
    checks = int(run(compiled(API, how)).split()[0])
    assert checks > 100


@needs_valgrind
@pytest.mark.parametrize("source", [EXAMPLE, API], ids=lambda source: source.stem)
def test_nothing_leaks_and_nothing_is_read_that_was_not_written(compiled, run, source):
    run(*VALGRIND, compiled(source))


def test_every_function_of_the_header_is_called(installed):
    header = (installed / "include" / "quelea_cmq.h").read_text()
    functions = set(re.findall(r"\b(quelea_cmq_\w+)\(", header))
    assert len(functions) > 20
    called = API.read_text() + EXAMPLE.read_text()
    assert [name for name in sorted(functions) if f"{name}(" not in called] == []


def test_the_header_is_for_cplusplus_too(compiled, run, tmp_path):
    source = tmp_path / "version.cpp"
    source.write_text('#include <quelea_cmq.h>\n#include <cstdio>\nint main() { std::puts(quelea_cmq_version()); }\n')
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", run(compiled(source, compiler="g++", standard="c++17")))
