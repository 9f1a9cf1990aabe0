"""Short names of models in charts: unique, never longer than asked, with what distinguishes them."""

import pytest

from giccs.report.model_names import chart_names, wrap_name

LONG = "an-organisation-with-a-long-name/" + "-".join(["distilled"] * 5)


def check(names, length):
    short = chart_names(names, length)
    assert list(short) == names
    assert len(set(short.values())) == len(names)
    assert max(map(len, short.values())) <= length
    return short


@pytest.mark.parametrize("length", [16, 32, 52])
@pytest.mark.parametrize(
    "names",
    [
        [f"{LONG}-{n:03}-multilingual" for n in range(100)],  # the difference is near the end
        [f"{n:03}-{LONG}" for n in range(100)],
        [f"org-{n}/{'m' * 60}" for n in range(100)],  # only the organisation differs
        [f"{'o' * 60}{n}/mini" for n in range(100)],
        ["x" * n for n in range(1, 97)],
        ["a/b", "b", "b/", "/b", "a/b (c/d)", "a/b (c/e)", " ", "…"],
        [f"org/m (dtype {'y' * 40}{n})" for n in range(3)],
    ],
)
def test_names_are_unique_and_short(names, length):
    check(names, length)


def test_the_organisation_is_omitted_where_the_rest_is_unique():
    names = ["sentence-transformers/mini", "intfloat/mini", "intfloat/e5", "/models/own/e5-large"]
    assert list(chart_names(names).values()) == [*names[:2], "e5", "e5-large"]


def test_the_part_that_differs_is_visible():
    names = [f"{LONG}-{version}-{'z' * 30}" for version in ("v1", "v2")]
    first, second = chart_names(names).values()
    assert ("v1" in first, "v2" in second) == (True, True)


@pytest.mark.parametrize("name", [LONG, "x" * 96, "a b", "-" * 30])
def test_lines_contain_the_whole_name(name):
    lines = wrap_name(name, 20).split("\n")
    assert "".join(lines) == name.replace(" ", " " if len(lines) == 1 else "")
    assert max(map(len, lines)) <= 20
