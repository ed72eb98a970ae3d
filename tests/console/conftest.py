"""A browser, brokers with some load, and what every page has to keep to."""

import contextlib
import os
from pathlib import Path

import pytest
from console.console import Console
from console.load import Load
from harness.elastic.broker import ElasticBroker
from harness.cmq.pipes import lines, push
from harness.ports import free_udp_port
from playwright.sync_api import expect, sync_playwright

PATIENCE_MS = 60_000
"""Nothing that a test waits for takes so long; what does has failed."""


def pytest_configure(config):
    expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def chromium():
    with sync_playwright() as playwright:
        # Root has no sandbox; what is shown comes from the broker under test.
        browser = playwright.chromium.launch(executable_path=os.environ["QUELEA_CHROMIUM"], args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def artefacts():
    folder = Path(os.environ["QUELEA_ARTEFACTS"])
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def busy():
    """A broker with queues, bindings, clients, accounts, an elastic queue and a CMQ peer, all of which do something."""
    cmq = f"127.0.0.1:{free_udp_port()}"
    with ElasticBroker(environment={"QUELEA__CMQ__LISTEN": cmq}) as broker, Load(broker):
        push(f"{cmq}/7", lines("nobody", "has", "bound this"), "--reliable")
        yield broker


@pytest.fixture
def open_console(chromium, artefacts, request):
    """Opens consoles; at the end none may have logged an error, broken its policy, or asked another origin."""
    with contextlib.ExitStack() as opened:

        def start(broker, user="guest", password="guest", **options) -> Console:
            context = opened.enter_context(chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}))
            context.set_default_timeout(PATIENCE_MS)
            console = Console(context, broker, artefacts)
            opened.callback(console.check_faults)
            opened.callback(console.keep, request.node.name)
            if user:
                console.sign_in(user, password)
            return console

        yield start
