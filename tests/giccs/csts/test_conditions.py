"""Features and entities of conditions."""

import pytest

from bws.base.charts import chart_svg
from giccs.csts.conditions import Count, analyse, frequent_parts, head, parse, singular

# C-STS Table 1 and C.1, L-CSTS 3.1 and Tables 1 and 3: conditions that the papers print
PRINTED = {
    "the color of animals": ("of", "color", "animal"),
    "the hobby": ("singleton", "type", "hobby"),
    "number of people": ("of", "number", "people"),
    "The number of bottles": ("of", "number", "bottle"),
    "the table": ("singleton", "type", "table"),
    "room type": ("compound", "type", "room"),
    "presence of meat": ("of", "presence", "meat"),
    "the amount of plates": ("of", "amount", "plate"),
    "The people’s demeanor": ("possessive", "demeanor", "people"),
    "The arrangement of objects": ("of", "arrangement", "object"),
    "The surface the objects are on": ("singleton", "type", "surface"),
    "The way the object is propelled": ("singleton", "type", "way"),
    "The sport being played": ("singleton", "type", "sport"),
    "The type of construction.": ("of", "type", "construction"),
    "The sentiment of the people.": ("of", "sentiment", "people"),
    "The color": ("feature", "color", ""),
}


@pytest.mark.parametrize("text", PRINTED)
def test_the_conditions_that_the_papers_print(text):
    result = parse(text)
    assert (result.form, result.feature, result.entity) == PRINTED[text]


@pytest.mark.parametrize(
    ("text", "form", "feature", "entity"),
    [
        ("the main colors of the two dogs in the yard", "of", "color", "dog"),
        ("number of pieces of cake", "of", "number", "piece"),
        ("THE  AGE OF THE MAN'S CHILDREN.", "of", "age", "child"),
        ("the kids' ages", "possessive", "age", "kid"),
        ("the color of the man wearing a hat", "of", "color", "man"),
        ("the type of living room", "of", "type", "room"),
        ("the tall building", "singleton", "type", "building"),
        ("the size in the picture", "feature", "size", ""),
        ("shirt colours", "compound", "colour", "shirt"),
        ("of the dog", "singleton", "type", "of"),
        ("the number of", "feature", "number", ""),
    ],
)
def test_the_rules(text, form, feature, entity):
    result = parse(text)
    assert (result.form, result.feature, result.entity) == (form, feature, entity)


@pytest.mark.parametrize("text", ["", " ", ".", "?!", "the"])
def test_without_words_there_is_no_condition(text):
    assert parse(text) is None


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        ("women", "woman"),
        ("glasses", "glass"),
        ("boxes", "box"),
        ("horses", "horse"),
        ("gloves", "glove"),
        ("knives", "knife"),
        ("potatoes", "potato"),
        ("shoes", "shoe"),
        ("cookies", "cookie"),
        ("ties", "tie"),
        ("babies", "baby"),
        ("bus", "bus"),
        ("dress", "dress"),
        ("species", "species"),
        ("means", "means"),
        ("gas", "gas"),
    ],
)
def test_singulars(plural, one):
    assert singular(plural) == one


def test_a_head_loses_its_apostrophe():
    assert head(["the", "dogs'"]) == head(["the", "dog's"]) == "dog"


def test_counts_are_by_row_and_shares_of_what_has_words():
    conditions = ["the color of the dog"] * 3 + ["Color of dogs.", "the cat", "the number", "", "?"]
    result = analyse(conditions)
    assert (result.total, result.empty, result.different) == (6, 2, 3)
    assert result.forms == {"of": 4, "possessive": 0, "compound": 0, "feature": 1, "singleton": 1}
    assert result.features == (
        Count("color", 4, 4 / 6),
        Count("number", 1, 1 / 6),
        Count("type", 1, 1 / 6),
    )
    # "the number" names no entity
    assert result.entities == (Count("dog", 4, 4 / 6), Count("cat", 1, 1 / 6))


def test_nothing_to_count_is_refused():
    with pytest.raises(ValueError, match="no condition has words"):
        analyse(["", "."])


def test_the_chart_shows_the_top_of_both():
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    result = analyse(["the color of the dog"] * 3 + ["the size of the cat"] * 2 + ["the hat"])
    chart = frequent_parts(result, top=2)
    drawn = chart.to_dict()
    names = [one["data"]["name"] for one in drawn["hconcat"]]
    shown = [[row["name"] for row in drawn["datasets"][name]] for name in names]
    assert shown == [["color", "size"], ["dog", "cat"]]
    svg = chart_svg(chart)
    assert "share of conditions" in svg
    assert all(f">{name}<" in svg for name in ("color", "size", "dog", "cat"))
    assert ">hat<" not in svg
