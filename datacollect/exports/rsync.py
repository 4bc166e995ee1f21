"""Scripts that run rsync, which fetches whole files, named in a list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.exports.remotes import name_before_colon, require_remote, require_url_host
from datacollect.exports.scripts import Scripts

if TYPE_CHECKING:
    from datacollect.exports.templates import Templates

# What ssh refuses, and what would be an option.
_NO_SSH = re.compile(r"-|.*[\s'\"`$\\;&<>|(){}\x00-\x1f\x7f]", re.DOTALL)
_RULE = "no host: no host of ssh begins with '-', or has spaces, quotes or other signs of shells"
# Of an rsync daemon: rsync://HOST/MODULE/ and HOST::MODULE/, then what lies below the module.
_DAEMON = re.compile(r"((?i:rsync)://[^/]*/|(?:\[[^]/]*\]|[^/:]*)::)(?:([^/]+/)(.*))?", re.DOTALL)


class _Rsync(Scripts):
    def address(self, templates: Templates, host: str, source: str, path: str) -> str:
        folder = templates.address(host, source, "")
        if not folder.endswith("/") or "/./" in folder:
            raise ProblemError(
                f"--url for {host!r}: rsync needs an address that ends in /{{path}}, without /./ "
                f"in it, got {folder + '{path}'!r}"
            )
        base, below = _base_of_list(folder, host)
        return f"{base}./{below}{path}"

    def require_address(self, host: str, template: str, address: str) -> None:
        if address.lower().startswith("rsync://"):
            require_url_host(host, template, address)
            return
        before = name_before_colon(address)
        name = None if before is None else before.rpartition("@")[2] or before
        is_taken = name is not None and _NO_SSH.match(name) is None
        require_remote(host, template, name, _RULE, is_taken=is_taken)


def _base_of_list(folder: str, host: str) -> tuple[str, str]:
    """Return to what the list of names that rsync gets is relative, and how they begin there.

    A daemon is named by its module alone: one that does not use chroot looks for names of lists
    in the folder below the module twice.

    Raises
    ------
    ProblemError
        A daemon's address names no module.
    """
    daemon = _DAEMON.fullmatch(folder)
    if daemon is None:
        return folder, ""
    before, module, below = daemon.groups()
    if module is None:
        raise ProblemError(
            f"--url for {host!r}: the address of an rsync daemon must name a module before "
            f"{{path}}, such as {before + 'MODULE/{path}'!r}, got {folder + '{path}'!r}"
        )
    return before + module, below


RSYNC = _Rsync(
    name="rsync",
    parts=("rsync",),
    is_url=False,
    may_cut=False,
    example="{host}:/data/{path}",
    keeper="~/.ssh/config, or the variable RSYNC_PASSWORD",
)
