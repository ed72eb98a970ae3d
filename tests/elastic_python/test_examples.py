"""The examples of the page run as they are pasted."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "elastic" / "clients.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
PATIENCE_S = 60


def test_the_page_has_both_kinds():
    assert len(EXAMPLES) == 2
    assert [("asyncio" in example) for example in EXAMPLES] == [False, True]


@pytest.mark.parametrize("number", range(2))
def test_an_example_ends_with_its_message(elastic, tmp_path, number):
    pasted = tmp_path / "pasted.py"
    pasted.write_text(EXAMPLES[number].replace("127.0.0.1:5670", elastic.elastic))
    done = subprocess.run([sys.executable, pasted], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert "eur.usd" in done.stdout and "1.0841" in done.stdout


def test_many_that_end_at_once_end_well(elastic, tmp_path):
    """What still goes on in their threads must not call an interpreter that is being finalized."""
    pasted = tmp_path / "pasted.py"
    pasted.write_text(EXAMPLES[1].replace("127.0.0.1:5670", elastic.elastic))

    def run(_):
        return subprocess.run([sys.executable, pasted], capture_output=True, text=True, timeout=PATIENCE_S)

    with ThreadPoolExecutor(max_workers=8) as runs:
        for done in runs.map(run, range(60)):
            assert (done.returncode, done.stderr) == (0, "")
