"""Templates of the addresses at which tools find a host's files, and what they may hold."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from datacollect.errors import ProblemError
from datacollect.exports.schemes import written

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

FIELDS = ("host", "source", "path")

# What grants access would be written into files that are copied to many hosts.
_PASSWORD = re.compile(r"//[^/@\s]*:[^/@\s]*@")
_SECRET_KEY = re.compile(
    r"[?&;,:]([^=&;,:/]*(?:token|signature|password|passwd|secret|credential|(?:api|access)_?key|"
    r"policy|bearer|macaroon|sig|pass(?=\b|_)|(?<![a-z])(?:key|pwd|jwt|sas|auth[nz]?|authorization)"
    r"(?![a-z]))[^=&;,:/]*)=",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Templates:
    """Templates by host, and one for all others.

    Attributes
    ----------
    own : mapping of str to str
        By host, of the files that it has itself; the empty name stands for all others.
    relayed : mapping of str to str
        Of others' data at a host; where there is none, what `own` says.
    is_url : bool
        Whether addresses are URLs, which say names by the rules of their schemes.
    example : str
        A template as this format has them, for messages.
    """

    own: Mapping[str, str]
    relayed: Mapping[str, str]
    is_url: bool = True
    example: str = "https://{host}.example/{path}"

    def address(self, host: str, source: str, path: str) -> str:
        """Return where a tool finds a file of a source at a host.

        >>> Templates({"": "https://{host}.example/{source}/{path}"}, {}).address("K", "S", "a b")
        'https://K.example/S/a%20b'

        Raises
        ------
        ProblemError
            No template says so.
        """
        template = self.template(host, source)
        values = {"host": host, "source": folder_of_host(source), "path": path}
        if self.is_url:
            values = {key: written(template, value) for key, value in values.items()}
        return re.sub(r"\{(host|source|path)\}", lambda found: values[found[1]], template)

    def where_collected(self, host: str) -> Templates:
        """Return these with a destination's own template, if it has one, for all that comes there.

        >>> both = Templates({"D": "davs://d/{source}/{path}"}, {"": "davs://k/{source}/{path}"})
        >>> both.where_collected("D").address("D", "S", "a")
        'davs://d/S/a'
        """
        if host not in self.own:
            return self
        return replace(self, relayed={host: self.own[host], **self.relayed})

    def template(self, host: str, source: str) -> str:
        """Return the template for a source's files at a host.

        Raises
        ------
        ProblemError
            There is none, or it does not distinguish sources.
        """
        template = self.own.get(host, self.own.get(""))
        if host != source:
            template = self.relayed.get(host, self.relayed.get("", template))
        if template is None:
            raise ProblemError(
                f"no address is known for what {host!r} serves; give --url '{host}=TEMPLATE', "
                f"such as {self.example!r}"
            )
        if host != source and "{source}" not in template:
            raise ProblemError(
                f"{host!r} forwards data of {source!r}, and {template!r} does not distinguish "
                f"sources; give --relay-url '{host}=TEMPLATE' with {{source}} in it"
            )
        return template


def folder_of_host(name: str) -> str:
    """Return the name of a folder for a host: a host's name may hold what no folder's may.

    >>> folder_of_host("lab/4"), folder_of_host(".."), folder_of_host("zürich")
    ('lab%2F4', '%2E.', 'zürich')
    """
    safe = "".join(quote(c, safe="") if c in "/%\\" or not c.isprintable() else c for c in name)
    return f"%{ord(safe[0]):02X}{safe[1:]}" if safe[0] in ".-" else safe


def read_templates(
    own: Iterable[str],
    relayed: Iterable[str],
    hosts: Collection[str],
    *,
    is_url: bool,
    example: str = Templates.example,
    keeper: str = "a place where the tool that fetches looks for it",
) -> Templates:
    """Read ``TEMPLATE`` and ``HOST=TEMPLATE``.

    Parameters
    ----------
    own, relayed : iterable of str
        Of the files that hosts have themselves, and of others' data.
    hosts : collection of str
        Of the problem.
    is_url : bool
        Whether addresses are URLs.
    example : str
        A template, for messages.
    keeper : str
        Where the tool keeps what grants access, for messages.

    Raises
    ------
    ProblemError
        A template lacks ``{path}``, has other fields, or holds what grants access.
    """
    return Templates(
        _by_host(own, "--url", hosts, keeper),
        _by_host(relayed, "--relay-url", hosts, keeper),
        is_url,
        example,
    )


def _by_host(
    texts: Iterable[str], option: str, hosts: Collection[str], keeper: str
) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        # An address may hold "=", too: only what stands before the first one can be a host.
        host, equals, template = text.partition("=")
        if not (equals and host in hosts):
            host, template = "", text
        _require_template(template, option, keeper)
        if host in found:
            whom = f"of {host!r}" if host else "for all hosts"
            raise ProblemError(f"{option}: two templates {whom}; keep one")
        found[host] = template
    return found


def _require_template(template: str, option: str, keeper: str) -> None:
    if _PASSWORD.search(template):
        raise ProblemError(
            f"{option}: a password may not stand in an address that is written into files; keep "
            f"it in {keeper}"
        )
    secret = _SECRET_KEY.search(template)
    if secret:
        raise ProblemError(
            f"{option}: {secret[1]!r} in an address that is written into files may grant access; "
            f"keep it in {keeper}, or have files of presigned addresses fetched by "
            "datacollect pull, whose collection file names a list of them: urls"
        )
    fields = set(re.findall(r"\{([^{}]*)\}", template))
    if "path" not in fields or not fields <= set(FIELDS) or not template.isprintable():
        raise ProblemError(
            f"{option} must be an address with {{path}} and, where wanted, {{host}} and {{source}} "
            f"in it, after HOST= if it is for one host of the problem, got {template!r}"
        )
