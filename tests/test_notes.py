"""Every note in the code has a translation, and every translation a note."""

import ast
import re
from importlib import import_module
from pathlib import Path
from string import Formatter

import pytest

from bws.base.notes import note, pattern
from giccs_app.explorer.labels.remarks import local_remark, translations

ROOT = Path(__file__).parents[1]


def templates_of(file):
    """Yield the templates of the calls of `note` in a module that imports it."""
    text = file.read_text("utf-8")
    if not re.search(r"^from bws\.base\.notes import .*\bnote\b", text, re.MULTILINE):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "note":
            template = node.args[0]
            if isinstance(template, ast.Constant):
                yield template.value
            elif isinstance(template, ast.Name):
                module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removeprefix("app.")
                yield getattr(import_module(module.removesuffix(".__init__")), template.id)
            else:
                pytest.fail(
                    f"{file}:{node.lineno}: the template is an expression; expected a text or a name"
                )


def all_templates():
    return {
        template
        for package in ("bws", "giccs", "mturk", "app/giccs_app")
        for file in sorted((ROOT / package).rglob("*.py"))
        for template in templates_of(file)
    }


def test_every_note_has_a_translation_and_every_translation_a_note():
    missing = all_templates() - {*translations("de")["notes"]}
    assert not missing, f"add translations to giccs_app/explorer/labels/notes/de.toml: {missing}"
    assert not {*translations("de")["notes"]} - all_templates(), (
        "delete translations without a note"
    )


def test_translations_use_the_values_of_the_notes():
    for english, german in translations("de")["notes"].items():
        values = [
            {name for _, name, _, _ in Formatter().parse(text) if name}
            for text in (english, german)
        ]
        assert values[1] <= values[0], english


EXAMPLES = {"": "a text", "d": 12, "f": 0.25, "g": 0.5, "%": 0.75, "p": 0.012}


def example(template):
    values = {
        name: "items" if name == "unit" else EXAMPLES[form[-1:]]
        for _, name, form, _ in Formatter().parse(template)
        if name
    }
    return note(template, **values)


@pytest.mark.parametrize(("before", "after"), [("", ""), ("all: ", "; 3 items of source x: none")])
def test_each_note_is_found_in_a_text_and_translated_as_a_whole(before, after):
    for template in all_templates():
        text = example(template)
        assert pattern(template).search(before + text + after)[0] == text
        german = local_remark(before + text + after, "de")
        assert german.removesuffix(after).endswith(local_remark(text, "de"))
        assert local_remark(text, "de") != text
