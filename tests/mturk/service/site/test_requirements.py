"""Every requirement has a description in both languages."""

import pytest

from mturk.service.rules.eligibility import (
    COMPARATOR_PHRASES,
    COMPARATORS,
    LOCALE,
    SYSTEM_TYPES,
    UnmetRequirement,
    WorkerQualifications,
    unmet_requirements,
)
from mturk.service.site.requirements import describe_requirement
from mturk.service.site.texts import TEXTS

NOBODY = WorkerQualifications(
    values={}, names={"3Q": "Reads German"}, country=None, subdivision=None
)


def lines(type_id, comparator):
    one = {"QualificationTypeId": type_id, "Comparator": comparator, "IntegerValues": [98]}
    if type_id == LOCALE:
        one |= {
            "IntegerValues": [],
            "LocaleValues": [{"Country": "DE"}, {"Country": "US", "Subdivision": "NY"}],
        }
    return unmet_requirements([one], NOBODY)


@pytest.mark.parametrize("comparator", sorted(set(COMPARATORS) - {"DoesNotExist"}))
@pytest.mark.parametrize("type_id", [*SYSTEM_TYPES, "3Q"])
def test_no_internal_name_is_left(type_id, comparator):
    for line in lines(type_id, comparator):
        german, english = describe_requirement(line, "de"), describe_requirement(line, "en")
        assert "Worker_" not in german + english
        assert german != str(line)
        assert english != str(line)


def test_the_words_for_places_and_parts_of_them():
    (line,) = lines(LOCALE, "In")
    assert (
        describe_requirement(line, "en")
        == "Country you live in: one of Germany, United States (NY)"
    )
    required = UnmetRequirement("Reads German", "Exists", ())
    assert describe_requirement(required, "de") == "Reads German: erforderlich"
    assert str(required) == "Reads German is required"


def test_a_name_like_a_sentence_stays_a_name():
    """Names are the requester's: also one such as the description of another requirement."""
    unmet = UnmetRequirement("Legal age is required", "In", ("1", "2000"))
    assert describe_requirement(unmet, "de") == "Legal age is required: eines von 1, 2.000"
    assert str(unmet) == "Legal age is required must be one of 1, 2000"


def test_all_comparators_and_the_workers_own_types_have_words():
    names = {name for name in SYSTEM_TYPES.values() if name.startswith("Worker_")}
    phrases = {*COMPARATOR_PHRASES.values()}
    assert {key for key in TEXTS if key.startswith("requirement.")} == {
        f"requirement.{name}" for name in names | phrases
    }
