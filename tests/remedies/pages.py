"""Remedies that pages give, in a browser."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

from bistro.destination.run.test_standing import ALL
from bistro.page.test_checking import LATEST_S, RECEIPT, checked, page_of, proof
from conftest import BROWSER_MS, chromium
from instances.authorities import certificate_pem
from instances.events import event_bytes
from remedies.trying import Example, call, in_new_folder, told

from datacollect.bistro.destination.run.overview_server import overview_page
from datacollect.bistro.destination.run.standing import write_standing
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.receipt.receipt import Receipt
from datacollect.measuring.page.watch_feed import WatchFeed
from datacollect.pictures.live_views import live_page


@contextmanager
def overview(folder):
    write_standing(ALL, [], folder)
    with overview_page(folder, 0) as made:
        yield made


def watch(folder):
    return live_page("measurements", "x", WatchFeed(folder, dict, {}).news, 0)


def opened(served, *, is_whole):
    """Return what a page says that is opened by the address as it was printed, or by a part."""

    def look():
        with (
            in_new_folder() as folder,
            mock.patch("datacollect.pictures.live_page.LOOK_S", 0.05),
            served(folder) as server,
            chromium() as browser,
        ):
            page = browser.new_page(ignore_https_errors=True)
            page.set_default_timeout(BROWSER_MS)
            page.goto(server.url if is_whole else server.url.partition("#")[0])
            if is_whole:
                page.locator(READY[served]).first.wait_for()
            else:
                page.get_by_text("what follows # lets you in").wait_for()
            return page.locator("body").inner_text()

    return look


# What is there once a page that is let in has been told all.
READY = {watch: "body[data-ready=yes]", overview: "text=as of"}

# A receipt with a token of an authority, which is none of the event.
WITH_TOKEN = RECEIPT.with_more(proofs=[proof(LATEST_S - 2)], tokens=[b"token"])


def on_the_page(language):
    def check():
        with (
            in_new_folder() as folder,
            chromium() as browser,
            page_of(browser, folder) as page,
        ):
            if language != "en":
                page.select_option("select", language)
            return "\n".join(checked(page, WITH_TOKEN.data))

    return check


def by_the_command():
    """Ask the command that the page names: it judges tokens of the event's authorities."""
    rows = [
        {"url": f"https://{name}.example", "certificate": certificate_pem(name)} for name in "ab"
    ]
    data = event_bytes(authorities=rows)
    # Without a log of verdicts its entries have no marks.
    commitment = replace(WITH_TOKEN.commitment, event=read_event(data).id, mark=None)
    with in_new_folder() as folder:
        (folder / "e.toml").write_bytes(data)
        receipt = Receipt(commitment, tokens=WITH_TOKEN.tokens)
        (folder / "a.receipt.json").write_bytes(receipt.data)
        said = told(lambda: call("verify a.receipt.json --event e.toml"))
    assert "Token 1 does not count" in said
    return said


EXAMPLES = [
    Example(
        "Open the address as it was printed: what follows # lets you in.",
        opened(watch, is_whole=False),
        opened(watch, is_whole=True),
    ),
    Example(
        "open the address as `event run` has printed it: what follows # lets you in",
        opened(overview, is_whole=False),
        opened(overview, is_whole=True),
    ),
    Example(
        "does not check tokens of outside authorities; `datacollect verify` does.",
        on_the_page("en"),
        by_the_command,
    ),
    Example(
        "prüft diese Seite nicht; das tut `datacollect verify`.", on_the_page("de"), by_the_command
    ),
    Example(
        "ne vérifie pas les jetons d’autorités extérieures ; `datacollect verify` le fait.",
        on_the_page("fr"),
        by_the_command,
    ),
]
