"""What the explorer says: the same keys in both languages, all that are used, and what data become in it."""

import re
import string
from pathlib import Path

import pytest

from bws.chance_agreement import agreement
from bws.split_half import reliability
from giccs.description.statistics import GROUPING_COLUMNS, Description, statistics_table
from giccs_app import explorer
from giccs_app.explorer import labels
from giccs_app.explorer.study import load

FORMATTER = string.Formatter()
HERE = Path(explorer.__file__).parent
USED = re.compile(r"""\bsay\(\s*f?["']([\w.{}]+)["']""")
NOTED = re.compile(
    r"""["']((?:page|overview|dialogues|annotation|models|errors)\.[a-z_0-9]+)["']"""
)


def used():
    """Return the keys that the explorer's modules name; ``{…}`` stands for what is filled in."""
    files = HERE.rglob("*.py")
    texts = [path.read_text(encoding="utf-8") for path in files]
    return {
        key for text in texts for key in (*USED.findall(text), *NOTED.findall(text)) if "." in key
    }


def test_both_languages_say_the_same_things():
    assert labels.keys("en") == labels.keys("de")
    assert len(labels.keys("en")) > 50


@pytest.mark.parametrize("language", labels.LANGUAGES)
def test_every_key_that_is_used_is_there(language):
    known = labels.keys(language)
    for key in used():
        pattern = re.compile(re.sub(r"\\\{.*?\\\}", r"[\\w-]+", re.escape(key)))
        assert any(pattern.fullmatch(one) for one in known), key


def test_every_key_is_used():
    patterns = [re.compile(re.sub(r"\\\{.*?\\\}", r"[\\w-]+", re.escape(key))) for key in used()]
    idle = {key for key in labels.keys("en") if not any(p.fullmatch(key) for p in patterns)}
    assert not idle


def test_both_languages_fill_in_the_same_values():
    for key in labels.keys("en"):
        fields = [
            {name for _, name, _, _ in FORMATTER.parse(labels.text_of(key, language)) if name}
            for language in labels.LANGUAGES
        ]
        assert fields[0] == fields[1], key


def test_no_text_is_empty_and_german_is_german():
    for key in labels.keys("en"):
        assert all(labels.text_of(key, language).strip() for language in labels.LANGUAGES)
    same = [
        key for key in labels.keys("en") if labels.text_of(key, "en") == labels.text_of(key, "de")
    ]
    assert len(same) < len(labels.keys("en")) / 5


def test_english_titles_of_result_tables_are_those_of_the_terminal():
    judgments = load().judgments
    groups = [Description({}, 1, 3, 9, 2.5, 40.0, 8, 3.0)]
    tables = [reliability(judgments, split="annotation", trials=2).result_table()]
    tables += [agreement(judgments).result_table(), statistics_table(groups)]
    for column in [
        column for table in tables for column in (*table.columns, *GROUPING_COLUMNS.values())
    ]:
        if column.key not in ("part", "original_domain"):
            assert labels.text_of(f"tables.{column.key}", "en") == column.header


def test_an_unknown_key_is_an_error():
    with pytest.raises(KeyError):
        labels.text_of("page.nothing", "en")


@pytest.mark.parametrize(
    "text", ["**b**", "`", "``x`", "$x$", ":smile:", "<b>", "a\n\nb", "", "`" * 9]
)
def test_what_data_say_is_a_code_span_whatever_it_is(text):
    span = labels.literal(text)
    fence = re.match("`+", span).group()
    assert span.endswith(fence)
    inside = span[len(fence) : -len(fence)]
    assert not re.search(rf"(?<!`){fence}(?!`)", inside)  # nothing inside ends it
    assert " ".join(text.split()) == inside.strip()
