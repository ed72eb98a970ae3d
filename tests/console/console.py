"""The console in a browser: its pages, and what each of them has to keep to."""

import os
import urllib.parse
from pathlib import Path

from playwright.sync_api import Page, expect

AXE = "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(v => ({id: v.id, help: v.help, at: v.nodes.map(n => n.html + ' ' + n.failureSummary)})))"


NETWORK_CHANGED = "ERR_NETWORK_CHANGED"
"""Chromium ends requests when this machine gets another interface, as other suites make them; the console asks again."""


class Console:
    """One tab. Whatever it logs as an error, and every request beyond its own origin, is a fault."""

    def __init__(self, context, broker, artefacts: Path):
        self.broker, self.artefacts = broker, artefacts
        self.faults: list[str] = []
        self.expected: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("console", self._logged)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", self._asked)

    def _logged(self, message):
        # A refused or failed request is logged by the browser; tests that bring it about expect it.
        if message.type in ("error", "warning") and not any(text in message.text for text in [NETWORK_CHANGED, *self.expected]):
            self.faults.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def _asked(self, request):
        if not request.url.startswith((self.broker.http, "blob:", "data:")):
            self.faults.append(f"asked {request.url}")
        if "guest" in urllib.parse.urlsplit(request.url).netloc:
            self.faults.append(f"a password in {request.url}")

    def expect_failures(self, *texts):
        """From now on the browser may log these."""
        self.expected += texts or ["Failed to load resource"]

    def check_faults(self):
        assert not self.faults, "\n".join(self.faults)

    # -- where it is --------------------------------------------------------------------------

    def sign_in(self, user="guest", password="guest"):
        self.page.goto(f"{self.broker.http}/")
        self.page.get_by_label("Name").fill(user)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("heading", name="Overview")).to_be_visible()

    def go(self, *names):
        """The page of these names, when it shows what it asked for."""
        path = "/".join(urllib.parse.quote(name, safe="") for name in names)
        self.page.evaluate("hash => { location.hash = hash }", f"#/{path}")
        expect(self.page.get_by_role("heading", level=1)).to_be_visible()
        expect(self.page.get_by_text("Loading …")).to_have_count(0)
        return self.page

    def heading(self) -> str:
        return self.page.get_by_role("heading", level=1).inner_text()

    def table(self, label):
        return self.page.get_by_role("table", name=label, exact=True)

    def row(self, label, text):
        return self.table(label).get_by_role("row").filter(has_text=text)

    def confirm(self, button, typed=None):
        """Presses the button in the dialog that has opened."""
        dialog = self.page.get_by_role("dialog")
        if typed is not None:
            expect(dialog.get_by_role("button", name=button)).to_be_disabled()
            dialog.get_by_role("textbox").fill(typed)
        dialog.get_by_role("button", name=button).click()
        expect(dialog).to_have_count(0)

    def said(self, text):
        """A notice that says it is done."""
        expect(self.page.get_by_text(text, exact=False).first).to_be_visible()

    # -- what is kept to ----------------------------------------------------------------------

    def check_accessible(self):
        if not self.page.evaluate("'axe' in window"):
            # By the debugger's door: the page's policy lets no other code in.
            self.page.evaluate(Path(os.environ["QUELEA_AXE"]).read_text())
        violations = self.page.evaluate(AXE)
        assert not violations, f"{self.page.url}: {violations}"

    def check_width(self):
        """Nothing sticks out at the side."""
        wide, seen = self.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert wide <= seen, f"{self.page.url} is {wide} wide in a window of {seen}"

    def keep(self, name):
        """A screenshot, also of a test that failed."""
        if not self.page.is_closed():
            self.page.screenshot(path=self.artefacts / f"{name[:80].replace('/', '-')}.png")
