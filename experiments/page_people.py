"""Submissions by people on the event's page, in Chromium: `bistro_demo.py` has five of them."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from datacollect.bistro.page.writing import write_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

HELD, WITHIN_S = "says that it has your hand-in", 60.0
LINES = "all => all.map(each => each.textContent)"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and says nothing of it."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder; yield its URL."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


def chromium_path() -> str | None:
    """Return where Chromium is; None: it is not there."""
    named = os.environ.get("DATACOLLECT_CHROMIUM")
    return named or shutil.which("chromium") or shutil.which("chromium-browser")


def hand_in(event: Path, page_folder: Path, people: Sequence[tuple[Path, Path]]) -> list[str]:
    """Have people hand in, each in a browser of its own, all at once.

    Receipt and ``.keep`` are saved beside each file, as `upload` would leave them.

    Parameters
    ----------
    event, page_folder : Path
        The event's file, and where its page is written.
    people : sequence of pairs of Path
        File and ticket of each.

    Returns
    -------
    list of str
        What the page says in the end to each.
    """
    from playwright.sync_api import sync_playwright

    write_page(event, page_folder, force=True)
    with served(page_folder) as url, sync_playwright() as playwright:
        # Containers have no namespaces for its sandbox.
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        # Bistros of a demo have certificates that no browser knows.
        contexts = [browser.new_context(locale="en", ignore_https_errors=True) for _ in people]
        pages = [context.new_page() for context in contexts]
        for page, (file, ticket) in zip(pages, people, strict=True):
            page.goto(url)
            page.set_input_files("#ticket", ticket)
            page.wait_for_selector("#ticket-said:not(:empty)")
            page.set_input_files("#file", file)
            page.click("#submit")
        said = [_waited(page) for page in pages]
        for page, (file, _) in zip(pages, people, strict=True):
            for button in ("Save the receipt", "Save the .keep"):
                with page.expect_download() as waiting:
                    page.get_by_role("button", name=button).click()
                waiting.value.save_as(file.with_name(waiting.value.suggested_filename))
        browser.close()
    return said


def _waited(page: Any) -> str:
    """Return what a page says of its file once a bistro holds it, or after a while."""
    until_s = time.monotonic() + WITHIN_S
    while True:
        line = " ".join(page.eval_on_selector_all("article .line", LINES))
        if HELD in line or time.monotonic() > until_s:
            return line
        time.sleep(0.1)
