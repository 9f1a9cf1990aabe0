import shutil

import pytest

from robustness import mutant_switch, mutants

CODE = '''"""Example."""

from __future__ import annotations


def is_small(value: int) -> bool:
    match value:
        case 7:
            return False
    if value < 3:
        return True
    return value in (40, 50)


def first_letter() -> str:
    return next(zip("a", "b", strict=True))[0]
'''
TESTS = """
from small import first_letter, is_small

assert first_letter() == "a"

def test_small(): assert is_small(2) and not is_small(3) and not is_small(7)
def test_wrong(): assert is_small(9)
"""


@pytest.mark.nightly
def test_each_mutant_is_tested_with_the_files_that_reach_it(tmp_path, monkeypatch):
    (tmp_path / "small.py").write_text(CODE)
    (tmp_path / "test_small.py").write_text(TESTS)
    (tmp_path / "test_other.py").write_text("def test_other(): pass")
    (tmp_path / "app").mkdir()
    (tmp_path / "robustness").mkdir()
    shutil.copy(mutant_switch.__file__, tmp_path / "robustness")
    monkeypatch.setitem(mutants.TESTS, "small", ["test_small.py", "test_other.py"])
    drawn = [mutants.Mutant("small.py", position) for position in range(9)]
    changes = mutants.insert_switches(tmp_path, drawn)
    suite = mutants.Suite(tmp_path, ["small"])
    assert suite.failures == ["--deselect=test_small.py::test_wrong"]
    found = {change: suite.find(number) for number, change in enumerate(changes)}
    by_test, survived = "test_small.py::test_small", ""
    assert found == {
        "small.py:9: False -> True": by_test,
        "small.py:10: if value < 3 -> if not value < 3": by_test,
        "small.py:10: value < 3 -> value <= 3": by_test,
        "small.py:10: 3 -> 4": by_test,
        "small.py:11: True -> False": by_test,
        "small.py:12: value in (40, 50) -> value not in (40, 50)": by_test,
        "small.py:12: 40 -> 41": survived,
        "small.py:12: 50 -> 51": survived,
        "small.py:16: 0 -> 1": "test_small.py",
    }


def test_mutants_are_drawn_from_functions_without_patterns(tmp_path):
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "code.py").write_text(CODE)
    drawn = mutants.draw(tmp_path, ["small"], 9, seed=0)
    assert {mutant.position for mutant in drawn} == set(range(9))
    assert drawn != mutants.draw(tmp_path, ["small"], 9, seed=1)


def test_all_packages_are_the_default_and_others_are_refused(capsys):
    assert mutants._options([]).packages == list(mutants.TESTS)
    assert mutants._options(["bws"]).packages == ["bws"]
    with pytest.raises(SystemExit):
        mutants._options(["bws", "bwz"])
    assert "no such package: bwz; expected bws, " in capsys.readouterr().err
