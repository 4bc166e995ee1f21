"""Values are taken as they are only where typer would make the same of them."""

from __future__ import annotations

import enum
from typing import Annotated, Literal, get_args, get_origin

import pytest
import typer
from typer.main import get_command

from datacollect.commands import main
from datacollect.commands.conversion import TIME, convert_what_needs_it
from datacollect.commands.help_option import Command


def commands_of(command, name="datacollect"):
    """Return every command by its name, those of groups too."""
    found = {name: command}
    for inner, each in getattr(command, "commands", {}).items():
        found |= commands_of(each, f"{name} {inner}")
    return found


COMMANDS = commands_of(get_command(main.app()))


def outcome(conversion, value, parameter, context):
    """Return what comes of a value, or what the user is told."""
    try:
        found = conversion.coerce(value, param=parameter, ctx=context)
    except typer.BadParameter as error:
        return error.format_message()
    return type(found), found


def values_for(parameter):
    kind = parameter.type_descriptor.annotation
    members = list(kind) if isinstance(kind, enum.EnumType) else []
    numbers = [0, 1, -1, 2.5, float("inf")]
    choices = [*get_args(kind)] if get_origin(kind) is Literal else []
    texts = ["1", "0.5", *map(str, members), *choices]
    # A number of seconds may have a unit: what is wrong with it is said in our words.
    texts += [] if parameter.metavar == TIME else ["", "a", "-", "no"]
    return [None, True, False, *members, *numbers, *texts, ["a", "b"], ("a",), (), [1]]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_value_is_what_typer_makes_of_it(name):
    command = COMMANDS[name]
    context = typer.Context(command)
    parameters = command.get_params(context)
    typers = {each.name: each.get_runtime_param() for each in parameters}
    convert_what_needs_it(parameters)
    for each in parameters:
        ours = each.get_runtime_param()
        for value in values_for(each):
            expected = outcome(typers[each.name], value, each, context)
            assert outcome(ours, value, each, context) == expected, (each.name, value)


def command_with(kind, option):
    """Return a command with one option."""
    program = typer.Typer(add_completion=False)

    @program.command(cls=Command)
    def only(value=None):
        """Do nothing."""

    only.__annotations__["value"] = Annotated[kind, option]
    return get_command(program)


@pytest.mark.parametrize(
    ("kind", "option", "value"),
    [
        (int, typer.Option("--value", min=3), 2),
        (str, typer.Option("--value", parser=str.upper), "a"),
        (float, typer.Option("--value", max=1.0), 2.0),
    ],
    ids=["least", "parsed", "most"],
)
def test_values_with_rules_are_judged_by_them(kind, option, value):
    command = command_with(kind, option)
    context = typer.Context(command)
    parameter = next(each for each in command.get_params(context) if each.name == "value")
    expected = outcome(parameter.get_runtime_param(), value, parameter, context)
    convert_what_needs_it([parameter])
    assert outcome(parameter.get_runtime_param(), value, parameter, context) == expected
    assert expected != (kind, value)


def test_a_parameter_of_another_kind_stays_as_it_is():
    parameter = object()
    convert_what_needs_it([parameter])
    assert not hasattr(parameter, "get_runtime_param")


def test_done_twice_is_done_once():
    command = COMMANDS["datacollect plan"]
    parameters = command.get_params(typer.Context(command))
    convert_what_needs_it(parameters)
    first = [each.get_runtime_param() for each in parameters]
    convert_what_needs_it(parameters)
    assert [each.get_runtime_param() for each in parameters] == first
