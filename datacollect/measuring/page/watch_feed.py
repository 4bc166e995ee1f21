"""Feed of the page that follows measurements: links, charts, tests that run, interfaces."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

from datacollect.measurement.outcomes import listed
from datacollect.measurement.sample_store import PartsReader
from datacollect.measurement.series.interface_rates import interface_rates
from datacollect.measuring.page.router_map import MBIT_BYTES, plotly_text
from datacollect.measuring.page.watch import watch_tree
from datacollect.measuring.plan.current_tests import running_tests
from datacollect.pictures.colours import PALETTE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from datacollect.measuring.page.router_map import Providers

    Readings = Mapping[str, tuple[Sequence[Mapping[str, Any]], str]]

# New samples are drawn so often, and after so many times what it takes to read and count them.
LEAST_S, TIMES = 2.0, 5.0


class WatchFeed:
    """Tells pages what is new since what each was told; for all threads.

    Parameters
    ----------
    folder : Path
        Of the samples.
    readings : callable
        Returns by host readings of its interfaces and why there are none.
    providers : mapping
        As `datacollect.measuring.page.router_map.read_providers` reads it.
    """

    def __init__(
        self, folder: Path, readings: Callable[[], Readings], providers: Providers
    ) -> None:
        self._folder, self._readings, self._providers = folder, readings, providers
        self._lock = threading.Lock()
        self._reader = PartsReader(folder)
        self._stamps: Mapping[str, Any] | None = None
        self._next_s = 0.0
        # By name what is shown, as JSON; links have a name each.
        self._texts: dict[str, str] = {}

    def news(self, told: dict[str, Any]) -> str | None:
        """Return what a page does not know yet, as JSON; None where there is nothing.

        Parameters
        ----------
        told : dict
            What the page knows; this function keeps it.
        """
        with self._lock:
            self._look()
            new = {name: text for name, text in self._texts.items() if told.get(name) != text}
        told |= new
        links = [text for name, text in new.items() if name.startswith("link ")]
        rows = [f'"{name}": {text}' for name, text in new.items() if not name.startswith("link ")]
        if links:
            rows.append(f'"links": [{", ".join(links)}]')
        return "{" + ", ".join(rows) + "}" if rows else None

    def _look(self) -> None:
        self._texts["tests"] = json.dumps(running_tests(self._folder))
        self._texts["hosts"] = json.dumps(
            {name: _lines(rows, why) for name, (rows, why) in self._readings().items()}
        )
        begun_s = time.monotonic()
        stamps = self._reader.stamps()
        if begun_s < self._next_s or stamps == self._stamps:
            return
        self._stamps, stored = stamps, self._reader.read()
        tree = watch_tree(stored.frame, self._providers)
        if stored.damaged:
            tree["facts"] += f" Damaged and left out: {listed(stored.damaged)}."
        for link in tree["links"]:
            self._texts[f"link {link['name']}"] = json.dumps(link, allow_nan=False)
        for name in ("facts", "charts"):
            self._texts[name] = json.dumps(tree[name], allow_nan=False)
        now_s = time.monotonic()
        self._next_s = now_s + max(LEAST_S, TIMES * (now_s - begun_s))


def _lines(readings: Sequence[Mapping[str, Any]], why: str) -> dict[str, Any]:
    """Return the lines of a host's interfaces that carried anything: received, and sent."""
    ages_s, rates = interface_rates(readings)
    rates = {name: sides for name, sides in rates.items() if any(map(any, sides))}
    lines = [
        {
            "name": f"{plotly_text(name)} {side}",
            "x": ages_s,
            "y": [None if rate is None else round(rate / MBIT_BYTES, 4) for rate in of_side],
            "mode": "lines",
            "line": {"color": PALETTE[number % len(PALETTE)], "dash": dash},
        }
        for number, (name, sides) in enumerate(rates.items())
        for of_side, side, dash in zip(sides, ("received", "sent"), ("solid", "dot"), strict=True)
    ]
    if not why and readings and not lines:
        why = "Nothing was carried."
    return {"lines": lines, "why": why}
