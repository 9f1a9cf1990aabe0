"""Declared options: one declaration for files, for calls of the library and for the command line."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import click
import pytest
from click.testing import CliRunner

from bws.base.options import (
    check_options,
    checked_value,
    click_options,
    declarations,
    option,
    problem_with,
)


def _even(value: str) -> str:
    if len(value) % 2:
        raise ValueError(f"{value!r} has {len(value)} characters; expected an even number")
    return value.upper()


@dataclass(frozen=True)
class Declared:
    colour: str = option("red", "Colour.", choices=("red", "blue"))
    kind: str | None = option(None, "Kind.", choices=lambda: ["a", "b"], none="any")
    count: int = option(3, "Count.", bounds=(1, 10), metavar="N")
    share: float = option(0.5, "Share.", bounds=(0, 1), min_open=True)
    warmup: float = option(0.5, "Warmup.", bounds=(0, 1), max_open=True)
    shown: bool = option(True, "Show it.")
    hidden: bool = option(True, "Hide it.", flag="--no-hiding")
    fast: bool = option(False, "Be fast.")
    word: str = option("AB", "Word.", parse=_even)
    price: tuple[float, float] | None = option(None, "Price.", bounds=(0, 9))
    codes: tuple[str, ...] = option((), "Codes.", pattern="[A-Z]{2}", expects='codes such as "DE"')
    dollars: Decimal = option(Decimal(1), "Dollars.", parse=Decimal)
    other: int = 0


def test_only_declared_fields_are_options():
    assert [*declarations(Declared)][-1] == "dollars"
    assert problem_with(Declared, "other", 1).startswith(
        "unknown option other; expected one of colour, "
    )


@pytest.mark.parametrize(
    ("name", "value", "parsed"),
    [
        ("colour", "blue", "blue"),
        ("kind", None, None),
        ("count", 10, 10),
        ("share", 1, 1),
        ("warmup", 0.0, 0.0),
        ("word", "abcd", "ABCD"),
        ("price", [1, 1.0], (1, 1.0)),
        ("codes", ["DE", "AT"], ("DE", "AT")),
        ("dollars", "0.25", Decimal("0.25")),
    ],
)
def test_allowed_values_are_returned_parsed(name, value, parsed):
    assert checked_value(Declared, name, value) == parsed
    assert problem_with(Declared, name, value) == ""


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("colour", "green", "colour is 'green'; expected one of red, blue"),
        ("colour", None, "colour is None; expected one of red, blue"),
        ("kind", "c", "kind is 'c'; expected one of a, b"),
        ("count", 0, "count is 0; expected an integer from 1 to 10"),
        ("count", True, "count is True; expected an integer from 1 to 10"),
        ("count", 2.0, "count is 2.0; expected an integer from 1 to 10"),
        ("share", 0, "share is 0; expected a number above 0 and up to 1"),
        ("share", float("nan"), "share is nan; expected a number above 0 and up to 1"),
        ("warmup", 1.0, "warmup is 1.0; expected a number from 0 and below 1"),
        ("shown", 1, "shown is 1; expected true or false"),
        ("word", "abc", "word: 'abc' has 3 characters; expected an even number"),
        ("word", 7, "word is 7; expected a text"),
        ("price", [1, 10], "price is [1, 10]; expected a list of a number from 0 to 9"),
        ("codes", ["DE", "DE"], "codes is ['DE', 'DE']; expected a list of codes such as \"DE\""),
        ("codes", "DE", "codes is 'DE'; expected a list of codes such as \"DE\""),
    ],
)
def test_other_values_are_refused_with_what_is_expected(name, value, message):
    assert problem_with(Declared, name, value) == message
    with pytest.raises(ValueError, match=f"^{name}") as caught:
        check_options(Declared(**{name: value}))
    assert str(caught.value) == message


def test_a_file_may_call_an_option_otherwise():
    with pytest.raises(ValueError, match=r"^number is 0; expected"):
        checked_value(Declared, "count", 0, called="number")


@click.command()
@click_options(
    Declared, *[name for name in declarations(Declared) if name not in ("codes", "dollars")]
)
def command(**values):
    click.echo(values)


def called(*arguments):
    result = CliRunner().invoke(command, arguments)
    return result.stdout or result.stderr


def test_the_command_line_has_the_same_defaults_and_values():
    assert eval(called()) == {
        "colour": "red", "kind": None, "count": 3, "share": 0.5, "warmup": 0.5, "shown": True,
        "hidden": True, "fast": False, "word": "AB", "price": None,
    }  # fmt: skip
    given = eval(
        called("--no-shown", "--no-hiding", "--fast", "--word", "abcd", "--price", "1", "2")
    )
    assert [given[name] for name in ("shown", "hidden", "fast")] == [False, False, True]
    assert (given["word"], given["price"]) == ("ABCD", (1.0, 2.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--colour", "green"), "'green' is not one of 'red', 'blue'"),
        (("--count", "11"), "11 is not in the range 1<=x<=10"),
        (("--warmup", "1"), "1.0 is not in the range 0<=x<1"),
        (("--word", "abc"), "'abc' has 3 characters; expected an even number"),
        (("--kind", "c"), "'c' is invalid; expected any or one of a, b"),
    ],
)
def test_the_command_line_refuses_the_same_values(arguments, message):
    assert message in called(*arguments)


def test_the_help_is_that_of_the_declaration():
    said = called("--help")
    for line in (
        "--count N ",
        "Count.  [default: 3; 1<=x<=10]",
        "--no-hiding",
        "--shown / --no-shown",
    ):
        assert line in said


@click.command()
@click_options(Declared, "codes")
def command_with_codes(codes):
    click.echo(codes)


def test_an_option_with_several_values_is_repeated():
    call = lambda *arguments: CliRunner().invoke(command_with_codes, arguments)  # noqa: E731
    assert eval(call("--codes", "DE", "--codes", "AT", "--codes", "DE").stdout) == ("DE", "AT")
    assert eval(call().stdout) == ()
    assert "'de' is invalid; expected codes such as" in call("--codes", "de").stderr
