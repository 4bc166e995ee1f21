"""The commands ``datacollect keys new`` and ``datacollect keys show``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.agent_work import new_key, show_key
from datacollect.commands.help_option import Command, Group
from datacollect.commands.options import Json

if TYPE_CHECKING:
    from datacollect.commands.agent_work import FactsOfKey

keys = typer.Typer(
    cls=Group,
    help="Make and show keys; others need to know the public half.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

KeyFile = Annotated[str, typer.Argument(metavar="FILE", help="File of the private key.")]
Witness = Annotated[
    str | None,
    typer.Option(
        "--witness", metavar="NAME", help="Print the verifier key of the witness of this name."
    ),
]


@keys.command(cls=Command)
def new(file: KeyFile, witness: Witness = None, as_json: Json = False) -> None:
    """Make a private key, which only you may read, and print its public half.

    One key, one purpose. A file that is there is never overwritten: its key would be lost.
    """
    new_key(file, as_json=as_json, more=_verifier_key_of(witness))


@keys.command(cls=Command)
def show(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="File of the private key, or a certificate.")
    ],
    witness: Witness = None,
    as_json: Json = False,
) -> None:
    """Print the public half of a private key, or the fingerprint of a certificate."""
    show_key(file, as_json=as_json, more=_verifier_key_of(witness))


def _verifier_key_of(witness: str | None) -> FactsOfKey | None:
    if witness is None:
        return None
    from datacollect.net.key_forms import KEY_FORMS
    from datacollect.net.kinds import HostName

    name = HostName().read(witness, "--witness")
    form = KEY_FORMS.get("witness")
    return lambda public: {form.field: form.text(name, public)}
