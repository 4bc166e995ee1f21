"""Names of hosts in addresses, which each tool would have to take: what tools have in common."""

from __future__ import annotations

import re

from datacollect.errors import ProblemError

# Names of the DNS and of files of hosts; an address of IPv6; then a port.
_URL = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*)|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?")
_URL_RULE = (
    "no host: names of hosts in URLs have letters a to z, digits, '.', '-' and '_'; others are "
    "written in punycode, as xn--…"
)


def require_scheme(tool: str, host: str, address: str, schemes: tuple[str, ...]) -> None:
    """Raise `ProblemError` unless an address has one of the schemes by which a tool fetches."""
    if not address.lower().startswith(tuple(f"{scheme}://" for scheme in schemes)):
        raise ProblemError(
            f"--url for {host!r}: {tool} scripts can check data only over {' or '.join(schemes)}, "
            f"got {address!r}; give such an address, or use rclone"
        )


def require_url_host(host: str, template: str, address: str) -> None:
    """Raise `ProblemError` unless the host in a URL is written as hosts are.

    Parameters
    ----------
    host : str
        Of the problem.
    template, address : str
        What was given for it, and what came of it.
    """
    scheme, _, rest = address.partition("://")
    name = None if scheme.lower() == "file" else rest.partition("/")[0].rpartition("@")[2]
    is_taken = name is not None and _URL.fullmatch(name) is not None
    require_remote(host, template, name, _URL_RULE, is_taken=is_taken)


def name_before_colon(address: str) -> str | None:
    """Return what stands before a colon; None where that is this host, or a remote of no name."""
    name, colon, _ = address.partition(":")
    return None if not colon or "/" in name or not name else name


def require_remote(
    host: str, template: str, name: str | None, rule: str, *, is_taken: bool
) -> None:
    """Refuse an address whose host, or remote, the tool would not take.

    Parameters
    ----------
    host : str
        Of the problem.
    template : str
        What was given for it.
    name : str or None
        Whom its address names; None: nobody else than this host.
    rule : str
        What the name is not, and which names are.
    is_taken : bool
        Whether the tool takes the name.

    Raises
    ------
    ProblemError

    Examples
    --------
    >>> require_remote("z", "{host}:{path}", "z", "no remote: …", is_taken=True)
    >>> require_remote("ü", "{host}:{path}", "ü", "no remote: those have letters", is_taken=False)
    Traceback (most recent call last):
    datacollect.errors.ProblemError: --url for 'ü': 'ü' is no remote: those have letters; give it \
another one: --url 'ü=NAME:{path}'
    """
    # What follows a slash in a host's name would be the beginning of a path.
    is_cut = "/" in host and "{host}" in _before_path(template)
    if not is_cut and (name is None or is_taken):
        return
    better = template.replace("{host}", "NAME") if "{host}" in template else "TEMPLATE"
    raise ProblemError(
        f"--url for {host!r}: {(host if is_cut else name)!r} is {rule}; give it another one: "
        f"--url '{host}={better}'"
    )


def _before_path(template: str) -> str:
    return template.partition("://")[2].partition("/")[0] or template.partition("/")[0]
