"""Take a picture of a plan's page in Chromium: `python docs/figures/draw_page.py`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

FIGURE = Path(__file__).parent / "page.png"
COMMANDS = (
    ("example", "sites"),
    ("plan", "sites.toml", "--deadline", "06:00", "-o", "sites.json"),
    ("plot", "sites.toml", "sites.json", "--html", "-o", "sites.html"),
)


def main() -> None:
    """Write the figure: the page of the example `sites`, with its cursor at a tenth."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for command in COMMANDS:
            datacollect = (sys.executable, "-m", "datacollect", *command)
            subprocess.run(datacollect, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        path = os.environ.get("DATACOLLECT_CHROMIUM") or shutil.which("chromium")
        # Containers have no namespaces for its sandbox; the page is our own.
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1100, "height": 760})
        page.goto(Path(folder, "sites.html").as_uri())
        page.wait_for_selector("body[data-ready=yes]")
        page.locator("#time").evaluate(
            "slider => { slider.value = 100; slider.dispatchEvent(new Event('input')); }"
        )
        page.screenshot(path=FIGURE)
        chromium.close()


if __name__ == "__main__":
    main()
