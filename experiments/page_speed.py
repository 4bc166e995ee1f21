"""Speed and memory of sealing on the page: in Chromium, on this machine.

Nobody is asked anything: files are sealed and kept, services do not answer. Seconds are those of
the page, from the click until the ciphertext is on the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyrage
from page_people import chromium_path, served

from datacollect.bistro.formats.event.draft import complete
from datacollect.bistro.formats.log.checkpoints import witness_key
from datacollect.bistro.page.files import SCRIPT, STYLE
from datacollect.bistro.page.writing import write_page
from datacollect.net.keys import new_private_key

SMALL_BYTES = 100_000
SEALED = "Sealed and kept here"
WITHIN_S = 600.0

# Clicks, and tells how long it took until one line more says that a file is sealed.
CLICK = """([said, nBefore]) => {
    const began = performance.now();
    window.sealedMs = null;
    const observer = new MutationObserver(() => {
        const lines = [...document.querySelectorAll("article .line")];
        const n = lines.filter((each) => each.textContent.startsWith(said)).length;
        if (n <= nBefore) return;
        observer.disconnect();
        window.sealedMs = performance.now() - began;
    });
    observer.observe(document.body, { childList: true, subtree: true, characterData: true });
    document.getElementById("submit").click();
}"""


def event_file(folder: Path) -> Path:
    """Write an event that anybody may hand in to; its services are nowhere."""
    now = datetime.now(UTC).replace(microsecond=0)
    identities = [pyrage.x25519.Identity.generate() for _ in range(2)]
    witnesses = [f"w{i}.invalid" for i in range(4)]
    draft = {
        "name": "Speed",
        "deadline": (now + timedelta(hours=1)).isoformat(),
        "timezone": "UTC",
        "collect_until": (now + timedelta(hours=2)).isoformat(),
        "keep_until": (now + timedelta(hours=3)).isoformat(),
        "recipients": [str(identity.to_public()) for identity in identities],
        "admission": "open",
        "services": [{"url": "https://127.0.0.1:9", "key": new_private_key().public}],
        "witnesses": [
            {"url": f"https://{name}", "vkey": witness_key(name, new_private_key().public).text}
            for name in witnesses
        ],
    }
    path = folder / "event.toml"
    path.write_bytes(complete(draft, new_private_key().public, os.urandom, {}))
    return path


class Heaps:
    """The most bytes that a page and its worker had, each in its heap and in buffers."""

    def __init__(self, session: Any) -> None:
        self._session, self._worker, self._n = session, "", 0
        self.most_bytes = {"page": 0, "worker": 0}
        session.on("Target.attachedToTarget", self._attached)
        session.on("Target.receivedMessageFromTarget", self._received)
        session.send(
            "Target.setAutoAttach",
            {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": False},
        )

    def _attached(self, event: dict[str, Any]) -> None:
        self._worker = event["sessionId"]

    def _received(self, event: dict[str, Any]) -> None:
        with suppress(KeyError):
            self._note("worker", json.loads(event["message"])["result"])

    def _note(self, where: str, told: dict[str, Any]) -> None:
        used = sum(told.get(f"{name}Size", 0) for name in ("used", "embedderHeapUsed"))
        used += told.get("backingStorageSize", 0)
        self.most_bytes[where] = max(self.most_bytes[where], used)

    def look(self) -> None:
        """Ask for what is used now."""
        self._n += 1
        message = json.dumps({"id": self._n, "method": "Runtime.getHeapUsage"})
        self._note("page", self._session.send("Runtime.getHeapUsage"))
        told = {"sessionId": self._worker, "message": message}
        self._session.send("Target.sendMessageToTarget", told)


def sealed_s(page: Any, path: Path, n_before: int, heaps: Heaps | None = None) -> float:
    """Return how long the page takes to seal a file and to have it on the disk."""
    page.set_input_files("#file", path)
    # In the page, so that nothing of this program's own counts.
    page.evaluate(CLICK, [SEALED, n_before])
    until_s = time.monotonic() + WITHIN_S
    while (found := page.evaluate("window.sealedMs")) is None:
        if heaps is not None:
            heaps.look()
        if time.monotonic() > until_s:
            raise SystemExit("the page does not seal")
        time.sleep(0.05)
    return float(found) / 1e3


def main() -> None:
    """Measure, and print what was measured."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=200_000_000, help="of the large file")
    parser.add_argument("--times", type=int, default=10, help="how often the small one is sealed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        write_page(event_file(folder), folder / "page")
        small, large = folder / "small", folder / "large"
        small.write_bytes(os.urandom(SMALL_BYTES))
        with large.open("wb") as file:
            for _ in range(options.bytes // 1_000_000):
                file.write(os.urandom(1_000_000))
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        with served(folder / "page") as url, browser.new_context(locale="en") as context:
            page = context.new_page()
            heaps = Heaps(context.new_cdp_session(page))
            page.goto(url)
            page.wait_for_selector("#submit")
            times_s = [sealed_s(page, small, i) for i in range(options.times)]
            large_s = sealed_s(page, large, options.times, heaps)
        browser.close()
        sizes = {each: (folder / "page" / each).stat().st_size for each in (SCRIPT, STYLE)}
    print(f"{SCRIPT} {sizes[SCRIPT]:,} B, {STYLE} {sizes[STYLE]:,} B")
    middle_ms, first_ms = statistics.median(times_s) * 1e3, times_s[0] * 1e3
    print(f"{SMALL_BYTES:,} B: {middle_ms:.0f} ms, the first {first_ms:.0f} ms")
    print(f"{options.bytes:,} B: {large_s:.1f} s, {options.bytes / large_s / 1e6:.0f} MB/s")
    print(", ".join(f"{where} {used / 1e6:.0f} MB" for where, used in heaps.most_bytes.items()))


if __name__ == "__main__":
    main()
