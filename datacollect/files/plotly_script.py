"""The script that draws charts in pages."""

from __future__ import annotations

from importlib.resources import files

from datacollect.installation import is_absent


def plotly_script() -> str | None:
    """Return plotly.js; None where the package is not installed."""
    try:
        return (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except ImportError as error:
        if not is_absent(error, "plotly"):
            raise
        return None
