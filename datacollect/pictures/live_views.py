"""Views of live pages: what each shows of its feed; wings and other packages bring theirs.

Another package brings one as an entry point of the group ``datacollect.live_views``.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING

from datacollect.files.registry import Registry
from datacollect.pictures.live_page import STRICT, LivePage
from datacollect.wings import LIVE_VIEWS as OF_WINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacollect.pictures.live_page import News

# What all views have: how they look, and how they hear what is new.
STYLE, SCRIPT = "live.css", "live.js"

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{head}
<link rel="icon" href="data:,">
<title>{title}</title>
</head>
<body>
<h1>{title}</h1>
{body}
{scripts}
</body>
</html>
"""


def _none() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class LiveView:
    """A view of a feed.

    Attributes
    ----------
    name : str
    package : str
        Where its style and its script lie.
    body : str
        HTML below the heading; has an element ``state`` that says whether the page is connected.
    style, script : str
        Names of files; the script shows what `live.follow` hands it.
    policy : str
        The page's Content-Security-Policy.
    libraries : callable
        Returns texts of scripts that its own needs, by the name of a file.
    """

    name: str
    package: str
    body: str
    style: str
    script: str
    policy: str = f"{STRICT}; img-src data:"  # for the page's icon, which is none
    libraries: Callable[[], Mapping[str, str]] = field(default=_none)

    def styles(self) -> dict[str, str]:
        """Return the texts of styles by the names of files, in their order."""
        return {STYLE: _own(STYLE), self.style: _text(self.package, self.style)}

    def scripts(self) -> dict[str, str]:
        """Return the texts of scripts by the names of files, in their order."""
        own = {SCRIPT: _own(SCRIPT), self.script: _text(self.package, self.script)}
        return {**self.libraries(), **own}

    def page(self, title: str, head: str, scripts: str) -> str:
        """Return the page, given what its head names or holds, and its scripts."""
        return _PAGE.format(title=html.escape(title), head=head, body=self.body, scripts=scripts)

    def files(self, title: str) -> dict[str, tuple[bytes, str]]:
        """Return the files of the live page, by path, with their media types.

        Raises
        ------
        ProblemError
            A library is not installed.
        """
        styles, scripts = self.styles(), self.scripts()
        head = "\n".join(f'<link rel="stylesheet" href="{name}">' for name in styles)
        tags = "\n".join(f'<script src="{name}"></script>' for name in scripts)
        found = {"/": (self.page(title, head, tags).encode(), "text/html; charset=utf-8")}
        for texts, kind in ((styles, "text/css"), (scripts, "text/javascript")):
            for name, text in texts.items():
                found[f"/{name}"] = text.encode(), f"{kind}; charset=utf-8"
        return found


LIVE_VIEWS = Registry(
    "view of live pages",
    "datacollect.live_views",
    LiveView,
    {"pull": "datacollect.pictures.pull_page:PULL_VIEW", **OF_WINGS},
)


def live_page(view: str, title: str, news: News, port: int) -> LivePage:
    """Return the page of a view, which is to be entered.

    Raises
    ------
    ProblemError
        The port is taken, or a library is not installed.
    """
    found = LIVE_VIEWS.get(view)
    return LivePage(found.files(title), news, port, found.policy)


def _own(name: str) -> str:
    return _text("datacollect.pictures", name)


def _text(package: str, name: str) -> str:
    return (files(package) / name).read_text(encoding="utf-8")
