"""What the binary serves for the console: types, caching, policy and size."""

import gzip
import re
import urllib.error
import urllib.request

import pytest

SCRIPT_BYTES_MAX = 150 * 1_000
PLAIN = {"Accept-Encoding": "identity"}


@pytest.fixture(scope="module")
def index(broker):
    return fetch(broker, "/", PLAIN)


def fetch(broker, path, headers):
    request = urllib.request.Request(broker.http + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, lowered(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, lowered(error.headers), error.read()


def lowered(headers):
    return {name.lower(): value for name, value in headers.items()}


def assets(index):
    """The files that the page asks for."""
    return [path for path in re.findall(r'(?:src|href)="(/[^"]+)"', index[2].decode()) if not path.startswith("/api")]


def test_the_page_is_the_console_and_not_the_plain_page(index):
    assert index[0] == 200 and index[1]["content-type"] == "text/html; charset=utf-8"
    assert b'<div id="app">' in index[2], "the binary was built without its console: is Node.js here?"


def test_no_code_stands_in_the_page_and_nothing_comes_from_elsewhere(index):
    page = index[2].decode()
    assert not re.search(r"https?:", page)
    assert not re.search(r"<script(?![^>]*\bsrc=)|\bstyle=|<style|\bon\w+=", page)
    assert len(assets(index)) >= 3


def test_every_file_has_its_type_its_hash_and_its_guards(broker, index):
    types = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    for path in assets(index):
        status, headers, _ = fetch(broker, path, PLAIN)
        assert status == 200 and headers["content-type"].startswith(types[path.rsplit(".", 1)[1]]), path
        assert headers["x-content-type-options"] == "nosniff"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert headers["cache-control"].endswith("immutable") == path.startswith("/assets/")


def test_who_has_a_file_gets_it_no_second_time(broker, index):
    for path in ["/", *assets(index)]:
        _, headers, _ = fetch(broker, path, PLAIN)
        again = fetch(broker, path, {**PLAIN, "If-None-Match": headers["etag"]})
        assert again[0] == 304 and again[2] == b""


def test_files_come_compressed_and_the_script_is_small(broker, index):
    scripts = 0
    for path in ["/", *assets(index)]:
        _, headers, packed = fetch(broker, path, {"Accept-Encoding": "gzip"})
        assert headers["content-encoding"] == "gzip"
        assert gzip.decompress(packed) == fetch(broker, path, PLAIN)[2]
        scripts += len(packed) if path.endswith(".js") else 0
    assert 0 < scripts <= SCRIPT_BYTES_MAX


def test_the_licences_of_what_is_bundled_come_with_it(broker):
    status, _, text = fetch(broker, "/licences.txt", PLAIN)
    assert status == 200
    packages = re.findall(rb"^(\S+) [\d.]+ \(.*\)$", text, re.MULTILINE)
    assert {b"svelte", b"uplot"} <= set(packages)
    assert text.count(b"Copyright") >= len(packages)


def test_what_is_no_file_is_not_found(broker):
    for path in ("/index.html", "/assets/none.js", "/assets/%2e%2e/index.html", "/files.rs"):
        assert fetch(broker, path, PLAIN)[0] == 404, path
