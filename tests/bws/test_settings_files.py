import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
from annotated_types import Ge, MinLen

from bws.base.problems import InputError
from bws.base.settings_files import Checked, SettingsText, Table, TableError, key_lines


def even(number):
    if number % 2:
        raise ValueError(f"is {number}; expected an even number")
    return number


@dataclass(frozen=True, slots=True)
class Part(Table):
    id: Annotated[str, MinLen(1)]
    kind: Literal["a", "b"] = "a"
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Plan(Table):
    name: str
    count: Annotated[int, Ge(1)] = 1
    pairs: Annotated[int, Checked(even)] = 2
    texts: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[Part] = ()
    is_open: bool = False
    days: tuple[int, ...] = ()

    def __post_init__(self):
        if self.is_open and self.parts:
            raise TableError(
                {"is_open": "is true; expected false with parts", "parts": "are closed"}
            )


def read(text):
    return SettingsText("plan.toml", tomllib.loads(text), key_lines(text))


def problems(text):
    file = read(text)
    with pytest.raises(InputError) as caught:
        file.parsed(Plan, file.values["a"], ("a",), name="a")
    return [(problem.line, problem.message) for problem in caught.value.problems]


def test_values_have_the_types_of_the_class():
    file = read('[a]\ndays = [1, 2]\n[[a.parts]]\nid = "x"\nshare = 1\n[a.texts]\nde = "Ja"\n')
    plan = file.parsed(Plan, file.values["a"], ("a",), name="a")
    assert plan == Plan("a", texts={"de": "Ja"}, parts=[Part("x", share=1.0)], days=(1, 2))


def test_all_problems_have_their_lines():
    text = (
        '[a]\ncount = 0\npairs = 3\nis_open = "no"\nname = "b"\nday = [1]\ndays = [1, "2"]\n'
        '[a.texts]\nde = 3\n[[a.parts]]\nkind = "c"\n[[a.parts]]\nid = ""\n[[a.parts]]\nid = 2026-01-01\n'
        "share = true\n"
    )
    names = "count, pairs, texts, parts, is_open, days"
    assert problems(text) == [
        (2, "a.count is 0; expected 1 or more"),
        (3, "a.pairs is 3; expected an even number"),
        (4, "a.is_open is 'no'; expected true or false"),
        (5, f"unknown key a.name; expected one of {names}"),
        (6, f"unknown key a.day; expected one of {names}; did you mean 'days'?"),
        (7, "a.days.2 is '2'; expected an integer"),
        (9, "a.texts.de is 3; expected a text"),
        (10, "a.parts.1.id is missing; expected a value"),
        (11, "a.parts.1.kind is 'c'; expected 'a' or 'b'"),
        (13, "a.parts.2.id is ''; expected a text"),
        (15, "a.parts.3.id is datetime.date(2026, 1, 1); expected a text"),
        (16, "a.parts.3.share is True; expected a number"),
    ]


def test_rules_about_several_keys_follow():
    assert problems('[a]\nis_open = true\n[[a.parts]]\nid = "x"\n') == [
        (2, "a.is_open is true; expected false with parts"),
        (3, "a.parts are closed"),
    ]


@pytest.mark.parametrize("value", ["3", '"x"', "[1]", "true"])
def test_what_is_no_table_is_refused(value):
    ((line, message),) = problems(f"# first\na = {value}\n")
    assert (line, message.split("; ")[1]) == (2, "expected a table")


def test_lines_of_unusual_files():
    text = (
        "# [not.a.table]\n"
        "a = '''\nb = 1\n[c]\n'''  # text\n"
        'd = """x\\"""\ne = 2\n"""\n'
        "f = [\n  1, # ]\n  { g = 2 },\n]\n"
        '\'h i\'."j.k" = "[l]"\n'
        "[ m . n ]\n"
        "o = { p = [\n1] }\n"
        "q = 2024-01-01T00:00:00Z\n"
        "[[m.r]]\n[[m.r]]\ns = '''x'''\n[m.r.t]\nu = 1\n[[m.r]]\nv = \"'''\"\nw = 1\n"
    )
    tomllib.loads(text)
    assert key_lines(text) == {
        ("a",): 2, ("d",): 6, ("f",): 9, ("h i", "j.k"): 13, ("m", "n"): 14, ("m", "n", "o"): 15,
        ("m", "n", "q"): 17, ("m", "r", 0): 18, ("m", "r", 1): 19, ("m", "r", 1, "s"): 20,
        ("m", "r", 1, "t"): 21, ("m", "r", 1, "t", "u"): 22, ("m", "r", 2): 23, ("m", "r", 2, "v"): 24,
        ("m", "r", 2, "w"): 25,
    }  # fmt: skip
