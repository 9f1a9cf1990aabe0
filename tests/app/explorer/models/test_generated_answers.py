"""Results whose answers were generated have no likelihoods; the pages show what was chosen instead."""

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from giccs.benchmark import read_benchmark
from giccs.evaluation.run import run
from giccs.measures.results import Store
from giccs.models.abilities import Response
from giccs.tasks.multiple_choice import MultipleChoice


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
