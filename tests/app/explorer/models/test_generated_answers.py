"""Results whose answers were generated have no likelihoods; the pages show what was chosen instead."""

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from giccs.benchmark import read_benchmark
from giccs.evaluation.run import run
from giccs.evaluation.task_results import evaluate_task
from giccs.measures.results import Store
from giccs.models.abilities import Response
from giccs.report.model_comparison import compare
from giccs.tasks.multiple_choice import MultipleChoice
from giccs_app.explorer.models.data import compare_accuracies


class FirstOrNothing:
    """Chooses A, and refuses every third answer."""

    name, identity = "chat:first", {"kind": "chat"}

    def respond(self, prompts, max_tokens, progress):
        return [Response("I can't say." if n % 3 == 2 else "A") for n in range(len(prompts))]

    def response_settings(self):
        return {}

    def environment(self):
        return {}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("generated"))
    task = MultipleChoice(answer="letter", permutations=2, choose_by="generation")
    for _ in run([FirstOrNothing()], [task], read_benchmark("giccs-sample").first(24), store):
        pass
    return store.folder


@pytest.fixture
def page(opened, results, tmp_path):
    from giccs.benchmark import write_benchmark

    data = tmp_path / "24.jsonl"
    write_benchmark(read_benchmark("giccs-sample").first(24).items, data)

    def open_page(**parameters):
        return opened("--data", data, "--results", results, **parameters)

    return open_page


class LastOrNothing(FirstOrNothing):
    """Chooses C, and refuses every fourth answer."""

    name = "chat:last"

    def respond(self, prompts, max_tokens, progress):
        return [Response("I can't say." if n % 4 == 3 else "C") for n in range(len(prompts))]


@pytest.mark.parametrize("permutations", [1, 2])
def test_a_difference_is_that_of_the_accuracies_and_of_the_comparison(permutations):
    task = MultipleChoice(answer="letter", permutations=permutations, choose_by="generation")
    data = read_benchmark("giccs-sample").first(24)
    results = [evaluate_task(task, model, data) for model in (FirstOrNothing(), LastOrNothing())]
    for board in compare(results).leaderboards:
        first, second = (
            next(r for r in results if row.model.startswith(r.model)) for row in board.models
        )
        predictions = [result.predictions for result in (first, second)]
        estimate, differing, left_out = compare_accuracies(*predictions, board.history)
        accuracies = [row.estimate.value for row in board.models]
        assert estimate.value == pytest.approx(accuracies[0] - accuracies[1])
        (pair,) = board.pairs
        assert (estimate.value, estimate.low, estimate.high, estimate.extra["p"]) == (
            pytest.approx(pair.value),
            pytest.approx(pair.low),
            pytest.approx(pair.high),
            pytest.approx(pair.p),
        )
        assert (estimate.n, left_out) == (24, 0)
        counts = estimate.extra["only_first"], estimate.extra["only_second"]
        assert tuple(differing["right"].to_list().count(n) for n in ("first", "second")) == counts


def texts(app):
    return " ".join(element.value for element in (*app.caption, *app.markdown))


def test_a_question_has_no_likelihoods(page):
    app = page(page="models", choices="question")
    assert "measure" not in [control.key for control in app.segmented_control]
    shown = " ".join(element.proto.body for element in app.get("html"))
    assert "share of the orders in which the option is chosen" in shown
    assert "log-likelihood" not in shown
    assert "bytes" not in shown


def test_refused_answers_are_not_expected_to_have_a_letter(page):
    app = page(page="models", choices="letters")
    table = app.dataframe[0].value
    assert table["chosen"].sum() == table["expected"].sum() == table["gold"].sum()
    assert "answers choose no option and are not counted" in texts(app)


def test_errors_count_questions_without_a_choice(page):
    app = page(page="errors")
    assert "measure" not in [control.key for control in app.segmented_control]
    assert "questions are answered incorrectly" in texts(app)
