"""Frames about models that choose: by hand, and the numbers of the task itself.

A model that is a formula stands for a language model: what is tested is what is made of its answers.
"""

import math

import polars as pl
import pytest
from scipy import stats

from giccs.benchmark import read_benchmark
from giccs.evaluation.task_results import evaluate_task
from giccs.measures.results import Store
from giccs.models.abilities import OptionScore, Scored
from giccs.prompts import open_template
from giccs.tasks.multiple_choice import MultipleChoice
from giccs.tasks.questions import MEASURES
from giccs_app.explorer.errors.data import wrong_answers
from giccs_app.explorer.models import data as frames
from giccs_app.explorer.models.data import read_predictions, read_prompts


class Formula:
    """Likes options by their letters and by how many words they share with the end of the prompt."""

    name, identity = "formula", {"kind": "causal"}

    def score(self, prompts, progress):
        return Scored(
            tuple(prompt.text for prompt in prompts),
            tuple(
                tuple(
                    OptionScore(self.logprob(prompt.text, option), len(option.split()), len(option))
                    for option in prompt.options
                )
                for prompt in prompts
            ),
            0,
        )

    def logprob(self, text, option):
        shared = len(set(text.split()[-60:]) & set(option.split()))
        return -float(len(option)) / 10 + shared

    def environment(self):
        return {}


@pytest.fixture(scope="module", params=[1, 3])
def kept(request, tmp_path_factory):
    """A result with one order of the options, and one with three, read back from its folder."""
    task = MultipleChoice(open_template("figure2-de-1"), permutations=request.param, resamples=20)
    store = Store(tmp_path_factory.mktemp("results"))
    path = store.add(evaluate_task(task, Formula(), read_benchmark("giccs-sample").first(20)))
    (result,) = store.results()
    return result, path.with_suffix(".parquet")


@pytest.mark.parametrize("measure", frames.MEASURES)
def test_what_is_chosen_gives_the_accuracies_of_the_task(kept, measure):
    result, path = kept
    chosen = frames.option_likelihoods(read_predictions(path, "choices"), measure)
    assert len(chosen) == 2 * 20 * 5
    assert (chosen.group_by("history", "dialogue_id").agg(pl.sum("chosen"))["chosen"] == 1).all()
    shown = frames.accuracies([result], measure)
    right = dict(
        frames.correct_answers(chosen).group_by("history").agg(pl.mean("right")).iter_rows()
    )
    assert dict(shown.select("history", "value").iter_rows()) == pytest.approx(right)
    assert shown["chance"].to_list() == pytest.approx([0.2, 0.2], abs=0.05)
    assert shown["value"].is_sorted(descending=True)


def test_the_measures_are_those_of_the_task():
    assert list(frames.MEASURES) == list(MEASURES)


def test_letters_are_those_that_the_task_counted(kept):
    result, path = kept
    counted = frames.count_letters(read_predictions(path, "choices"), "with")
    (group,) = [group for group in result.groups if group.by == {"history": "with"}]
    told = group.metrics["accuracy"].extra["chosen"]
    assert dict(counted.frame.select("letter", "chosen").iter_rows()) == told
    assert counted.frame["gold"].sum() == pytest.approx(sum(told.values()))
    assert counted.frame["expected"].sum() == pytest.approx(sum(told.values()))
    assert (counted.questions, counted.reason) == (20, "few")


def test_prompts_are_read_for_one_question_only(kept):
    result, path = kept
    prompts = read_prompts(path, "restaurant-01")
    assert len(prompts) == 2 * result.signature["permutations"]
    assert prompts["prompt"].str.contains("Antwort:").all()
    assert read_prompts(path, "nowhere").is_empty()


def rows(*options, dialogue="d", history="with", order=0):
    """Return a row an option: (letter, logprob, gold, score)."""
    likeliest = max((option[1] for option in options), default=0)
    return [
        {
            "dialogue_id": dialogue,
            "utterance_id": f"{dialogue}-{letter}",
            "history": history,
            "order": order,
            "letter": letter,
            "answer": f" {letter}",
            "logprob": float(logprob),
            "tokens": 2,
            "bytes": 4,
            "chosen": logprob == likeliest,
            "gold": gold,
            "score": score,
            "logprob_alone": -1.0,
        }
        for letter, logprob, gold, score in options
    ]


def test_the_likeliest_is_chosen_the_first_of_several_and_none_of_what_is_no_number():
    table = pl.DataFrame(
        rows(("A", -3, False, 0.1), ("B", -1, True, 0.9), ("C", -1, False, 0.2))
        + rows(("A", math.nan, True, 0.9), ("B", -1, False, 0.2), dialogue="e")
    )
    result = frames.option_likelihoods(table)
    assert result["chosen"].to_list() == [False, True, False, None, None]
    assert frames.answers_by_question(result) == {"d": {"with": True}, "e": {"with": None}}


def test_wrong_answers_come_with_how_sure_they_are():
    table = pl.DataFrame(
        rows(("A", -3, True, 0.9), ("B", -1, False, 0.3))
        + rows(("A", -1, True, 0.9), ("B", -2, False, 0.3), dialogue="right")
        + rows(("A", -9, True, 0.9), ("B", -1, False, 0.4), ("C", -6, True, 0.9), dialogue="e")
    )
    item_id = pl.concat_str("dialogue_id", "utterance_id")
    items = table.select(
        "dialogue_id",
        "utterance_id",
        item_id=item_id,
        utterance="answer",
        last_turn=pl.lit("Hallo"),
    )
    result = wrong_answers(frames.option_likelihoods(table), "with", items)
    assert result.select("dialogue_id", "chosen", "right", "margin").rows() == [
        ("e", " B", " C", 5.0),  # the likelier of two right ones
        ("d", " B", " A", 2.0),
    ]
    (chosen,) = items.filter(dialogue_id="e", utterance=" B")["item_id"]
    assert result["item_id"][0] == chosen
    assert wrong_answers(frames.option_likelihoods(table), "without", items).is_empty()


def test_uneven_letters_are_scipys_chi_square():
    # 20 questions of two options; the first is chosen in 15
    table = pl.DataFrame(
        [
            row
            for n in range(20)
            for row in rows(
                ("A", -1 if n < 15 else -3, n % 2 == 0, 0.5), ("B", -2, n % 2 == 1, 0.5),
                dialogue=str(n),
            )
        ]
    )  # fmt: skip
    result = frames.count_letters(table, "with")
    assert result.frame.rows() == [("A", 15, 10.0, 10.0), ("B", 5, 10.0, 10.0)]
    assert result.p == pytest.approx(stats.chisquare([15, 5]).pvalue, rel=1e-9)
    mixed = pl.concat(
        [table, pl.DataFrame(rows(("A", 0, True, 1), ("B", -1, False, 0), ("C", -2, False, 0)))],
        how="vertical_relaxed",
    )
    assert frames.count_letters(mixed, "with").reason == "lengths"


def test_letters_of_generated_answers_without_a_choice_are_not_expected():
    # 40 questions of two options; the first 20 are answered, each letter in ten
    table = pl.DataFrame(
        [
            {"dialogue_id": str(n), "history": "with", "order": order, "letter": letter,
             "chosen": n < 20 and letter == "AB"[(n + order) % 2], "gold": letter == "A"}
            for n in range(40) for order in (0, 1) for letter in "AB"
        ]
    )  # fmt: skip
    result = frames.count_letters(table, "with")
    assert result.frame.rows() == [("A", 20, 40.0, 20.0), ("B", 20, 0.0, 20.0)]
    assert (result.p, result.questions) == (1, 20)
    assert (result.unanswered, result.answers) == (40, 80)
    none = frames.count_letters(table.with_columns(chosen=pl.lit(False)), "with")
    assert (none.reason, none.questions, none.unanswered) == ("few", 0, 80)


def test_two_right_options_count_half_each():
    table = pl.DataFrame(rows(("A", -1, True, 0.9), ("B", -2, True, 0.9)))
    assert frames.count_letters(table, "with").frame["gold"].to_list() == [0.5, 0.5]


def test_two_models_are_compared_on_the_questions_that_both_were_asked():
    def table(**right):
        return pl.DataFrame(
            [row for name, is_right in right.items() for row in two(name, is_right)]
        )

    def two(name, is_right):
        other = math.nan if is_right is None else -2
        right = bool(is_right)
        return rows(("A", -1, right, 0.5), ("B", other, not right, 0.5), dialogue=name)

    first = table(a=True, b=True, c=False, d=True, only=True)
    second = table(a=False, b=True, c=False, d=None)
    result, differing, left_out = frames.compare_accuracies(first, second, "with")
    assert (result.n, result.value, left_out) == (3, pytest.approx(1 / 3), 2)
    assert (result.extra["only_first"], result.extra["only_second"]) == (1, 0)
    assert differing.rows() == [("a", "first")]
    turned, differing, left_out = frames.compare_accuracies(second, first, "with")
    assert (turned.value, differing.rows(), left_out) == (
        pytest.approx(-1 / 3),
        [("a", "second")],
        2,
    )
