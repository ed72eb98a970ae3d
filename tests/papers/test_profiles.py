"""What `make cmq-profile` makes of heaptrack's report."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "experiments" / "profiles" / "cmq.py"
REPORT = """\
PEAK MEMORY CONSUMERS
1.50M peak memory consumed over 20 calls from
malloc
  in /lib/libc.so.6
1.25M consumed over 12 calls from:
    quelea_cmq::net::pool::Pool::take::h2ecbc8e4598b0544
      in /quelea-bench
    quelea_cmq::endpoint::Endpoint::bind::h9bdfe3a683d34974
      in /quelea-bench
250.00K consumed over 8 calls from:
    std::thread::spawn::h72e20fec590842ed
      in /quelea-bench
    quelea_cmq::net::pool::Pool::take::h8742064d228ef701
      in /quelea-bench
512B consumed over 1 calls from:
    quelea_cmq_proto::key::Key::new::h1e03a2e2adf87157
      in /quelea-bench

calls to allocation functions: 21 (1/s)
peak heap memory consumption: 1.50M
"""


@pytest.fixture
def profile():
    spec = importlib.util.spec_from_file_location("cmq_profile", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_a_function_holds_is_one_sum_and_the_largest_comes_first(profile):
    shown = profile.in_short(REPORT.splitlines())
    assert [line.split() for line in shown[:2]] == [
        ["1,500.0", "kB", "quelea_cmq::net::pool::Pool::take"],
        ["0.5", "kB", "quelea_cmq_proto::key::Key::new"],
    ]
    files = [{"filename": f"/work/crates/cmq/{name}", "summary": dict.fromkeys(profile.KINDS, {"covered": covered, "count": 10})}
             for name, covered in (("lib/src/net.rs", 9), ("lib/src/dest.rs", 7), ("proto/src/key.rs", 10))]
    assert {crate: kinds["lines"] for crate, kinds in profile.by_crate(files).items()} == {"quelea-cmq": (16, 20), "quelea-cmq-proto": (10, 10)}
    assert shown[2:] == ["calls to allocation functions: 21 (1/s)", "peak heap memory consumption: 1.50M"]
