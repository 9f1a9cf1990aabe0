"""Fixtures of the explorer's pages: the whole explorer in Streamlit's own app tester, and hostile data."""

import csv
import html
import importlib.util
import json
import re
import sys
from pathlib import Path

import polars as pl
import pytest

from giccs.benchmark import write_benchmark
from giccs.benchmark.items import Item, Turn
from giccs.models.abilities import OptionScore, Scored
from giccs_app import explorer

SCRIPT = explorer.__file__.replace("__init__", "streamlit_app")
HOSTILE = (
    "<script>alert(1)</script>",
    "**bold** _italic_ `code`",
    "$x^2$ :smile: :material/home: :red[red]",
    "![](http://127.0.0.1:9/x.png) [link](http://127.0.0.1:9)",
)


class Formula:
    """Stands for a language model: an option is as likely as a function of its text says."""

    identity = {"kind": "causal"}  # noqa: RUF012

    def __init__(self, name, logprob):
        self.name, self.logprob = name, logprob

    def score(self, prompts, progress):
        answers = tuple(
            tuple(OptionScore(self.logprob(option), 3, len(option)) for option in prompt.options)
            for prompt in prompts
        )
        return Scored(tuple(prompt.text for prompt in prompts), answers, 0)

    def environment(self):
        return {}


@pytest.fixture(scope="session")
def formula():
    """Return a function from a name and a function of an option's text to a model that chooses options."""
    return Formula


@pytest.fixture
def app_tester(monkeypatch, request):
    """Return Streamlit's app tester, made several times as fast.

    It does not search all installed packages for components, of which the explorer has none. Altair checks
    complete charts only, not each of their parts as well, and those only in modules with `CHECKS_CHARTS`,
    which open each kind of view.
    """
    testing = pytest.importorskip(
        "streamlit.testing.v1", reason="the extra giccs[app] is not installed"
    )
    from altair.utils import schemapi
    from streamlit.components.v2.component_manager import BidiComponentManager

    discover = "discover_and_register_components"
    monkeypatch.setattr(BidiComponentManager, discover, lambda self, **options: None)
    monkeypatch.setattr(schemapi, "DEBUG_MODE", False)
    if not getattr(request.module, "CHECKS_CHARTS", False):
        monkeypatch.setattr(schemapi.SchemaBase, "validate", classmethod(lambda cls, *given: None))
    return testing.AppTest


@pytest.fixture
def opened(app_tester, monkeypatch):
    """Return a function that opens the explorer: arguments of the command, parameters of the link."""

    def open_page(*arguments, **parameters):
        monkeypatch.setattr(sys, "argv", [SCRIPT, *map(str, arguments)])
        app = app_tester.from_file(SCRIPT, default_timeout=180)
        app.query_params = dict(parameters)
        app.run()
        assert not app.exception, app.exception[0].message
        return app

    return open_page


@pytest.fixture(scope="session")
def _views():
    return {}


@pytest.fixture
def seen(opened, _views):
    """Return a function that opens a page as `opened` does, once for all tests that only read it."""

    def seen_page(*arguments, **parameters):
        view = (*map(str, arguments), *sorted(parameters.items()))
        if view not in _views:
            _views[view] = opened(*arguments, **parameters)
        return _views[view]

    return seen_page


@pytest.fixture
def chart_rows():
    """Return a function from a chart on a page, selected by texts of its specification, to all its rows."""

    def rows_of(app, *texts):
        charts = [each.proto for each in app.get("vega_lite_chart")]
        (chart,) = [each for each in charts if all(text in each.spec for text in texts)]
        frames = [pl.read_ipc_stream(each.data.data) for each in chart.datasets]
        return [row for frame in frames for row in frame.to_dicts()]

    return rows_of


@pytest.fixture
def select():
    """Return a function that selects a row of a table (by index), or a point of a chart (by its fields).

    The app tester cannot; None removes the selection.
    """

    def select_in(app, element, choice):
        if element.type == "dataframe":
            selection = {"rows": [] if choice is None else [choice], "columns": [], "cells": []}
        else:
            selection = {"selected": [] if choice is None else [choice]}
        states = app._tree.get_widget_states()
        states.widgets.add(id=element.proto.id, string_value=json.dumps({"selection": selection}))
        app._run(states)
        assert not app.exception, app.exception[0].message

    return select_in


@pytest.fixture
def selected():
    """Return a function from a table to the index of its selected row, None if no row is selected."""

    def selected_in(app, table):
        state = app.session_state[f"{table.key}"] if table.key in app.session_state else None
        rows = state["selection"]["rows"] if state else []
        return rows[0] if rows else None

    return selected_in


@pytest.fixture(scope="session")
def text_table():
    """Return a function that returns the rows of the only table of complete texts, with its head."""

    def rows(app):
        (table,) = (each.proto.body for each in app.get("html") if "<table>" in each.proto.body)
        assert not re.search(r"<(?!/?(div|table|thead|tbody|tr|t[hd])\b)", table)
        return [
            list(map(html.unescape, re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)))
            for row in table.split("<tr>")[1:]
        ]

    return rows


@pytest.fixture(scope="session")
def hostile_texts():
    """Return texts that are HTML, Markdown, or both."""
    return HOSTILE


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    """Return a benchmark and judgments in which every text is markup."""
    folder = tmp_path_factory.mktemp("hostile")
    dialogue, source, domain = (f"{what} {HOSTILE[n]}" for n, what in enumerate("dsx"))
    turns = tuple(Turn(f"<b>{n}</b>", text) for n, text in enumerate(HOSTILE))
    items = [
        Item(f"i{n}", dialogue, source, domain, turns, f"u{n}", text, 0.5)
        for n, text in enumerate(HOSTILE)
    ]
    other = [Item(f"o{n}", "other", "", "", turns[:2], f"u{n}", f"x{n}", 0.5) for n in range(2)]
    write_benchmark([*items, *other], folder / "benchmark.jsonl")
    with open(folder / "judgments.csv", "w", newline="", encoding="utf-8") as file:
        file.write("tuple_id,group,item1,item2,item3,best,worst,annotator,comment\n")
        rows = csv.writer(file)
        for n, third in enumerate(["u2", "u3"]):
            row = [f"t{n}", dialogue, "u0", "u1", third, "u0", third, HOSTILE[0], HOSTILE[1]]
            rows.writerow(row)
    return folder


@pytest.fixture(scope="session")
def extremes():
    """Return the module with the study at the limits of the pages."""
    path = Path(__file__).with_name("extremes.py")
    specification = importlib.util.spec_from_file_location("extremes", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def extreme_study(extremes, tmp_path_factory):
    """Return the arguments of giccs explore for the study at the limits of the pages."""
    folder = tmp_path_factory.mktemp("extremes")
    extremes.write_study(folder)
    files = {"data": "benchmark.jsonl", "judgments": "judgments.csv", "results": "results"}
    return [str(part) for name, file in files.items() for part in (f"--{name}", folder / file)]
