"""The declaration of the ends of a participation, its table in the documentation, and refused settings."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from bws.base.problems import InputError
from mturk.service.rules.ends import (
    ENDS,
    FREEING_OUTCOMES,
    FULL,
    LEFT,
    RELEASED,
    WITHDRAWN,
)
from mturk.service.site.studies import PanelStudy, read_studies

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "operations" / "participations.md"


def table():
    """Return (end, submitted) -> (codes, place) of the page."""
    rows = {}
    for line in PAGE.read_text("utf-8").splitlines():
        if match := re.match(r"\| `(\w+)` \| (yes|no) \|", line):
            _, _, _, _, codes, place, *_ = line.split("|")
            key = match[1], match[2] == "yes"
            assert key not in rows
            rows[key] = (tuple(re.findall(r"`(\w+)`", codes)), place.strip())
    return rows


def test_the_table_of_the_documentation_is_the_declaration():
    assert table() == {
        key: (end.codes, "taken" if end.holds_place else "free") for key, end in ENDS.items()
    }


def test_every_end_has_both_rows_and_a_submitted_task_holds_the_place():
    names = {name for name, _ in ENDS}
    assert {name for name, submitted in ENDS if submitted} == names - {FULL}
    assert {name for name, submitted in ENDS if not submitted} == names
    for (_, submitted), end in ENDS.items():
        assert end.holds_place or not submitted
        assert set(end.codes) <= {setting.name for setting in fields(PanelStudy)}
    assert FREEING_OUTCOMES == ("withdrawn", "no_consent", "screened_out", "timed_out", "erased")


@pytest.mark.parametrize(("end", "submitted"), [key for key in ENDS if key[1]])
def test_a_study_has_a_code_for_each_end_with_a_submitted_task(end, submitted):
    study = PanelStudy("pilot", "C1", minutes=5, timed_out_code="LATE")
    without_code = (
        LEFT,
        RELEASED,
        "closed",
        "erased",
    )  # the link leads back, or to the researchers
    assert bool(study.code(end, submitted=submitted)) == (end not in without_code)


def test_withdrawn_participants_have_their_own_code_or_that_of_finished_ones():
    assert PanelStudy("a", "C1").code(WITHDRAWN, submitted=False) == ""
    assert PanelStudy("a", "C1").code(WITHDRAWN, submitted=True) == "C1"
    own = PanelStudy("a", "C1", withdrawn_code="W1")
    assert [own.code(WITHDRAWN, submitted=submitted) for submitted in (True, False)] == ["W1"] * 2
    blank = PanelStudy("a", "C1", withdrawn_code=" ")
    assert blank.code(WITHDRAWN, submitted=True) == "C1"


def test_settings_that_leave_an_end_without_a_code_are_refused(tmp_path):
    file = tmp_path / "studies.toml"
    file.write_text('[a]\ncompletion_code = "C1"\nminutes = 9\n[b]\nminutes = 9\n', "utf-8")
    with pytest.raises(InputError) as caught:
        read_studies(str(file))
    assert "a.minutes needs timed_out_code, a code" in str(caught.value)
    assert "b.completion_code is missing" in str(caught.value)
    with pytest.raises(ValueError, match="minutes needs timed_out_code"):
        PanelStudy("a", "C1", minutes=9, timed_out_code=" ")
    assert PanelStudy("a", "", volunteers=True, return_url="", minutes=9).minutes == 9


@pytest.mark.parametrize("folder", ["giccs/data", "giccs/data/en"])
def test_the_studies_of_the_sample_have_all_codes(folder):
    for study in read_studies(str(ROOT / folder / "studies.toml")):
        assert study.code("timed_out", submitted=True)
