"""Judgments of language models in files of judgments."""

import pytest

from bws.base.problems import InputError
from bws.files import read_judgments
from bws.scoring import score

HEADER = "tuple_id,item1,item2,item3,best,worst,annotator,prompt,run\n"
PEOPLE = "t1,a,b,c,a,c,ann,,\nt1,a,b,c,a,b,bob,,\n"
MODEL = "t1,a,b,c,a,c,model:m@1,judge-en-1,0\nt1,a,b,c,b,c,model:m@1,judge-en-1,1\n"


def read(tmp_path, text):
    path = tmp_path / "judgments.csv"
    path.write_text(HEADER + text)
    return read_judgments(path)


def test_a_model_judges_a_tuple_once_per_prompt_and_run(tmp_path):
    judgments = read(tmp_path, MODEL + "t1,a,b,c,b,c,model:m@1,judge-en-2,1\n")
    assert len(judgments) == 3
    assert judgments.by_model.all()
    with pytest.raises(InputError, match=r"line 2; .*of a model one per prompt and run"):
        read(tmp_path, MODEL + "t1,a,b,c,b,c,model:m@1,judge-en-1,0\n")


def test_runs_do_not_allow_people_to_judge_a_tuple_twice(tmp_path):
    with pytest.raises(InputError, match=r"expected one judgment per annotator and tuple$"):
        read(tmp_path, "t1,a,b,c,a,c,ann,x,0\nt1,a,b,c,a,b,ann,x,1\n")


def test_people_and_models_are_not_pooled(tmp_path):
    judgments = read(tmp_path, PEOPLE + MODEL)
    assert judgments.by_model.tolist() == [False, False, True, True]
    with pytest.raises(InputError, match="2 of 4 judgments are by language models"):
        score(judgments)
    for rows in (judgments.by_model, ~judgments.by_model):
        assert len(score(judgments.select(rows))) == 3


def test_judgments_without_annotator_are_not_by_models(tmp_path):
    judgments = read(tmp_path, "t1,a,b,c,a,c,,,\n" + MODEL)
    assert judgments.by_model.tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            ["w-1,simulated", "w-2,simulated"],
            True,
        ),  # collected from simulated workers, with pseudonyms
        (["simulated-1,", "w-2,simulated"], True),
        (["w-1,simulated", "w-2,too simulated for me"], False),
        (["simulated-1,", ",easy"], False),
    ],
)
def test_a_study_is_simulated_if_all_its_judgments_are(tmp_path, rows, expected):
    path = tmp_path / "judgments.csv"
    lines = [f"t{n},a,b,c,a,c,{row}\n" for n, row in enumerate(rows)]
    header = "tuple_id,item1,item2,item3,best,worst,annotator,comment\n"
    path.write_text(header + "".join(lines), "utf-8")
    assert read_judgments(path).is_simulated == expected
