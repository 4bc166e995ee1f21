"""The script that draws charts in pages."""

from __future__ import annotations

from importlib.resources import files


def plotly_script() -> str | None:
    """Return plotly.js; None where the package is not installed."""
    try:
        return (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    except (ModuleNotFoundError, FileNotFoundError):
        return None
