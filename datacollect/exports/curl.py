"""Scripts that run curl."""

from __future__ import annotations

from datacollect.exports.remotes import require_scheme, require_url_host
from datacollect.exports.scripts import Scripts


class _Curl(Scripts):
    def require_address(self, host: str, template: str, address: str) -> None:
        require_scheme(self.name, host, address, ("https", "http", "file"))
        require_url_host(host, template, address)


CURL = _Curl(
    name="curl",
    parts=("curl", "http"),
    keeper="~/.netrc, or the file that DATACOLLECT_CURL_OPTIONS names",
)
