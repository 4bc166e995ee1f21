"""Versions of a server's files: by ETag, date, or hash."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

# ETags that are a hash of the bytes, as object stores have: equal ones are equal files anywhere.
_DIGEST = re.compile(r'"[0-9a-fA-F]{32,}(-[0-9]+)?"')


@dataclass(frozen=True)
class Version:
    """Version of a file, as far as it is known.

    Attributes
    ----------
    etag : str or None
        As the server writes it.
    modified : str or None
        Its header ``Last-Modified``, where the ETag is weak or absent.
    sha256 : str or None
        Of the whole file, in lowercase hexadecimal, as a manifest says.
    """

    etag: str | None = None
    modified: str | None = None
    sha256: str | None = None

    @property
    def strong_etag(self) -> str | None:
        """The ETag, if equal ones mean equal bytes (RFC 9110, 2022, 8.8.1)."""
        etag = self.etag
        is_strong = etag is not None and etag.startswith('"') and etag.endswith('"')
        return etag if is_strong and etag != '"' else None

    @property
    def is_of_bytes(self) -> bool:
        """Whether equal versions are equal bytes at different addresses, too."""
        return self.sha256 is not None or _DIGEST.fullmatch(self.etag or "") is not None

    def is_other(self, found: Version) -> bool:
        """Return whether an answer's version is another one, as far as both say.

        >>> Version('"a"').is_other(Version('"b"')), Version('"a"').is_other(Version())
        (True, False)
        """
        pairs = [(self.etag, found.etag)]
        if self.strong_etag is None:
            pairs.append((self.modified, found.modified))
        return any(a is not None and b is not None and a != b for a, b in pairs)

    def tag(self, address: str | None = None) -> str | None:
        r"""Return it as the state keeps it, with a mark of the address that it was found at.

        >>> Version('"a"', sha256="00").tag()
        '{"etag": "\\"a\\"", "sha256": "00"}'
        """
        modified = None if self.strong_etag is not None else self.modified
        known = {"etag": self.etag, "modified": modified, "sha256": self.sha256, "at": address}
        text = json.dumps({key: value for key, value in known.items() if value is not None})
        return None if text == "{}" else text

    @classmethod
    def of_tag(cls, tag: str | None) -> Version:
        """Return what the state has kept.

        >>> Version.of_tag(Version('"a"', None, "00").tag()) == Version('"a"', None, "00")
        True
        """
        known = {} if tag is None else json.loads(tag)
        known.pop("at", None)
        return cls(**known)


def address_of_tag(tag: str | None) -> str | None:
    """Return the mark of the address that a version was found at; None: it was not kept.

    >>> address_of_tag(Version('"a"').tag("x")), address_of_tag(Version('"a"').tag())
    ('x', None)
    """
    return None if tag is None else json.loads(tag).get("at")


UNKNOWN = Version()
