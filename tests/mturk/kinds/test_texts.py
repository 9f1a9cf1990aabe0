"""Texts of the pages: both languages have the same structure; examples follow the rules."""

import pytest

from mturk.kinds.conditions import find_remark
from mturk.kinds.texts import built_in_texts
from mturk.study.settings_file import default_settings

LANGUAGES = ("de", "en")


def shape(value):
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    return [shape(one) for one in value] if isinstance(value, list) else type(value)


@pytest.mark.parametrize("kind", ["conditions", "relabel", "verification"])
def test_texts_of_both_languages_have_same_structure(kind):
    english, german = (built_in_texts(f"mturk.kinds.{kind}", language) for language in LANGUAGES)
    assert shape(english) == shape(german)


def test_word_lists_of_both_languages_have_same_names():
    english, german = (
        built_in_texts("mturk.kinds.conditions", language, "words") for language in LANGUAGES
    )
    assert english.keys() == german.keys()
    for lists in (english, german):
        assert all(word == word.lower() for item_list in lists.values() for word in item_list)


@pytest.mark.parametrize("language", LANGUAGES)
def test_good_examples_have_no_remarks(language):
    texts = built_in_texts("mturk.kinds.conditions", language)
    shown = [texts["example"], *texts["rules"], *texts["more"]]
    good = [
        (one[kind], one["sentences"])
        for one in shown
        for kind in ("good", "high", "low")
        if kind in one
    ]
    assert len(good) >= 8
    assert [one for one in good if find_remark(*one)] == []


@pytest.mark.parametrize("kind", ["relabel", "verification"])
def test_levels_match_scale(kind):
    for language in LANGUAGES:
        texts = built_in_texts(f"mturk.kinds.{kind}", language)
        assert [level["level"] for level in texts["levels"]] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("kind", ["conditions", "relabel", "verification"])
def test_default_language_has_test(kind):
    from mturk.study.qualification import built_in_test

    assert built_in_test(default_settings(kind, "en")).pass_at == 75
