"""Scripts that run aria2, which fetches whole files."""

from __future__ import annotations

from datacollect.exports.remotes import require_scheme, require_url_host
from datacollect.exports.scripts import Scripts


class _Aria2(Scripts):
    def require_address(self, host: str, template: str, address: str) -> None:
        require_scheme(self.name, host, address, ("https", "http"))
        require_url_host(host, template, address)


ARIA2 = _Aria2(
    name="aria2",
    parts=("aria2", "http"),
    may_cut=False,
    keeper="~/.netrc, or the file that DATACOLLECT_ARIA2_CONF names",
)
