"""As many files as a hand-in may have, on the page, in Chromium and Firefox: minutes.

    make page-files

One file more than that is refused in words, and the rest is handed in; the zip file has a proof of
each. Prints how long each step took, for how long the page was deaf at most, and the most memory
that all processes of the browser and of the event had together.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from conftest import chromium
from instances.events import key_of
from instances.firefox import firefox
from instances.handing_pages import CONTEXT, PageWorld
from instances.watched_pages import wait_until

from datacollect.bistro.formats.event.tickets import Ticket

N = 10_000
PHONE = {"width": 360, "height": 640}
WATCH = """() => {
    globalThis.blobs = [];
    const make = URL.createObjectURL;
    URL.createObjectURL = (blob) => (blobs.push(blob), make.call(URL, blob));
    globalThis.made = new DataTransfer();
    for (let i = 0; i < %d; i++) {
        made.items.add(new File([`${i}`], `${i}.txt`, { lastModified: 1 }));
    }
    globalThis.deaf_ms = 0;
    let last = performance.now();
    setInterval(() => {
        deaf_ms = Math.max(deaf_ms, performance.now() - last - 10);
        last = performance.now();
    }, 10);
}"""
DROP = """document.body.dispatchEvent(
    new DragEvent("drop", { dataTransfer: made, bubbles: true, cancelable: true }))"""


class Memory:
    """Memory of all that this process has started, looked at again and again."""

    def __init__(self) -> None:
        self.most_bytes, self._is_over = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._is_over.wait(0.5):
            self.most_bytes = max(self.most_bytes, self._now())

    def _now(self) -> int:
        parents, found, n_bytes = {}, {str(Path("/proc/self").resolve().name)}, 0
        for each in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                parents[each.parent.name] = each.read_text().rpartition(")")[2].split()[1]
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        for pid in found & parents.keys() - {Path("/proc/self").resolve().name}:
            with suppress(OSError):
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()
                n_bytes += 1024 * int(text.partition("\nPss:")[2].split()[0])
        return n_bytes

    @contextmanager
    def watched(self):
        self._thread.start()
        yield self
        self._is_over.set()
        self._thread.join()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with ExitStack() as held:
        verdicts = {"key": key_of("verdicts").public, "url": "https://there.example"}
        limits = {"commitments_per_ticket": 10, "files": N}
        made = PageWorld(tmp_path_factory.mktemp("many"), held, verdicts=verdicts, limits=limits)
        made.start()
        held.enter_context(made.bistro("north"))
        yield made


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def new_page(request):
    """Open a page of nothing, in one browser or the other."""
    if request.param == "firefox":
        with firefox() as browser:
            yield browser.new_page
        return
    with chromium() as browser:
        look = {"viewport": PHONE, "locale": "en", **CONTEXT}
        yield lambda _: browser.new_context(**look).new_page()


def test_all_are_handed_in_and_one_more_is_refused_in_words(new_page, world, tmp_path, request):
    path = world.ticket_file(tmp_path, 70 + len(request.node.callspec.id))
    page = new_page(PHONE)
    page.goto(f"{world.url}/{Ticket.from_file(path).link}")
    wait_until(page, "document.getElementById('ticket-said').textContent.includes('this event')")
    page.evaluate(WATCH % (N + 1))
    began_s = time.monotonic()

    def say(text):
        sys.stdout.write(f"{request.node.callspec.id}: {text}\n")

    def told(what):
        nonlocal began_s
        took_s, deaf_ms = time.monotonic() - began_s, page.evaluate("deaf_ms")
        say(f"{what} after {took_s:.1f} s, deaf {deaf_ms:.0f} ms")
        page.evaluate("() => { deaf_ms = 0; }")
        began_s = time.monotonic()

    with Memory().watched() as memory:
        page.evaluate(DROP)
        wait_until(page, "document.querySelectorAll('#chosen li').length === 201")
        refusal = "You have chosen 10001 files, and one hand-in may have 10000."
        assert page.text_content("#refusal").startswith(refusal)
        told("one too many refused")
        page.evaluate("document.querySelectorAll('#chosen button')[0].click()")
        wait_until(page, "document.getElementById('refusal').textContent === ''")
        assert page.text_content("#taken").startswith("10000 files, ")
        told("one removed")
        page.evaluate("document.getElementById('submit').click()")
        wait_until(page, "document.querySelector('#now article')?.className === 'held'")
        assert page.text_content("#now article .name").startswith("10000 files: ")
        told("handed in")
        save = "[...document.querySelectorAll('#now button')].find((each) => each.textContent === "
        page.evaluate(f"{save}'Save all proofs').click()")
        wait_until(page, "blobs.length > 0")
        n_told = page.evaluate(
            """async () => {
                const bytes = new DataView(await blobs[0].arrayBuffer());
                return bytes.getUint16(bytes.byteLength - 12, true);
            }"""
        )
        assert n_told == N
        told("all proofs saved")
    say(f"{memory.most_bytes / 1e6:.0f} MB at most")
    page.close()
