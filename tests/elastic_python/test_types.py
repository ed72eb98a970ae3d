"""What type checkers see is what there is."""

import subprocess
import sys
from pathlib import Path

import pytest
import quelea_client

HERE = Path(__file__).resolve().parent


def check(*command, cwd):
    ended = subprocess.run(
        [sys.executable, "-m", *map(str, command)], capture_output=True, text=True, timeout=300, check=False, cwd=cwd
    )
    return ended.returncode, ended.stdout + ended.stderr


def mypy(tmp_path, *what):
    return check("mypy", "--strict", "--cache-dir", tmp_path / "cache", *what, cwd=tmp_path)


def test_the_package_is_typed(tmp_path):
    assert (Path(quelea_client.__file__).parent / "py.typed").exists()
    code, output = mypy(tmp_path, "-p", "quelea_client")
    assert code == 0, output


def test_the_stubs_are_what_the_module_has(tmp_path):
    """stubtest compares names, signatures and kinds with the compiled module."""
    code, output = check("mypy.stubtest", "quelea_client", cwd=tmp_path)
    assert code == 0, output


def test_a_program_that_is_right_is_found_right(tmp_path):
    code, output = mypy(tmp_path, HERE / "typed_right.py")
    assert code == 0, output


@pytest.mark.parametrize("number, line", list(enumerate((HERE / "typed_wrong.txt").read_text().splitlines())))
def test_a_line_that_is_wrong_is_found_wrong(tmp_path, number, line):
    code, fault = line.split("  # ")
    program = tmp_path / "wrong.py"
    program.write_text((HERE / "typed_right.py").read_text() + f"\n{code}\n")
    ended, output = mypy(tmp_path, program)
    assert ended == 1 and f"[{fault}]" in output, output


def test_everything_public_says_what_it_is():
    for module in (quelea_client, quelea_client.aio):
        for name in module.__all__:
            thing = getattr(module, name)
            if isinstance(thing, type):
                assert thing.__doc__, name
                for member, value in vars(thing).items():
                    if callable(value) and not member.startswith("_"):
                        assert value.__doc__, f"{name}.{member}"
