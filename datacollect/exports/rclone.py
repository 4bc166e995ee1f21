"""Scripts that run rclone, whose addresses are remotes and what lies below them."""

from __future__ import annotations

import re

from datacollect.exports.remotes import name_before_colon, require_remote
from datacollect.exports.scripts import Scripts

# Of all versions since 1.56: later ones take "+", "@" and other alphabets, too.
_REMOTE = re.compile(r"[A-Za-z0-9_.](?:[A-Za-z0-9_. -]*[A-Za-z0-9_.-])?")
_RULE = (
    "no remote: names of rclone's remotes have letters a to z, A to Z, digits, '_', '-', '.' and "
    "spaces, and begin and end with none of '-' and space"
)


class _Rclone(Scripts):
    def require_address(self, host: str, template: str, address: str) -> None:
        remote = name_before_colon(address)
        name = None if remote is None else remote.partition(",")[0]
        is_taken = name is not None and _REMOTE.fullmatch(name) is not None
        require_remote(host, template, name, _RULE, is_taken=is_taken)


RCLONE = _Rclone(
    name="rclone",
    parts=("rclone", "http"),
    is_url=False,
    example="{host}:{path}",
    keeper="rclone config",
)
