import json
from collections import Counter
from dataclasses import replace

import pytest
from click.testing import CliRunner

pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")

from bws.base.problems import InputError
from mturk import answers
from mturk.cli import main
from mturk.kinds import Behaviour, ExpectedTuple, find_problems
from mturk.study.client import connect, resolve
from mturk.study.ledger import Ledger
from mturk.study.publish import create_hits
from mturk.study.settings import Settings
from mturk.study.simulated_browser import UnreachableError, WebClient
from mturk.study.simulated_workers import (
    read_links,
    read_truth,
    simulate_answer,
    simulate_workers,
    simulated_worker_ids,
)

ASKED = [ExpectedTuple("t1", "d1", ("a", "b", "c;")), ExpectedTuple("t2", "d2", ("a", "x", "y"))]
TRUE = {
    ("d1", "a"): 1.0, ("d1", "b"): 0.0, ("d1", "c;"): -1.0,
    ("d2", "a"): -1.0, ("d2", "x"): 0.0, ("d2", "y"): 1.0,
}  # fmt: skip


def said(worker="ASIMULATED1", **behaviour):
    return simulate_answer(ASKED, TRUE, Behaviour(**behaviour), worker, 0.0)


def test_answers_without_noise_match_truth():
    fields = dict(said(noise=0))
    assert (fields["best-t1"], fields["worst-t1"]) == ("a", "c;")
    assert (fields["best-t2"], fields["worst-t2"]) == ("y", "a")
    assert fields["comment"] == "simulated"


def test_simulated_answers_are_valid():
    orders = Counter()
    for number in range(60):
        fields = said(f"ASIMULATED{number}", noise=2.0, careless=0.5)
        assert find_problems(ASKED, fields) == []
        orders[dict(fields)["shown-t1"]] += 1
    assert len(orders) == 6


def test_answers_are_deterministic_per_worker_and_seed():
    assert said(noise=1.0) == said(noise=1.0)
    everyone = [
        [dict(said(f"W{n}", noise=1.0, seed=s))["shown-t1"] for n in range(9)] for s in (0, 1)
    ]
    assert len(set(everyone[0])) > 1
    assert everyone[0] != everyone[1]


def test_noise_matches_bws_simulate():
    # the best of a, b, c at 1, 0, -1 with noise 1: e / (e + 1 + 1/e) = 0.665
    best = Counter(dict(said(f"W{n}", noise=1.0))["best-t1"] for n in range(2000))
    assert best["a"] / 2000 == pytest.approx(0.665, abs=0.04)


def test_deviation_depends_on_worker_and_item():
    # with tastes alone, the best of equal items differs between workers, never between tuples
    tuples = [ExpectedTuple(f"t{n}", "d1", ("a", "b", "c;")) for n in range(3)]
    best = Counter()
    for number in range(300):
        behaviour = Behaviour(noise=0, disagreement=0.5)
        fields = dict(
            simulate_answer(tuples, dict.fromkeys(TRUE, 0.0), behaviour, f"W{number}", 0.0)
        )
        assert len({fields[f"best-t{n}"] for n in range(3)}) == 1
        best[fields["best-t0"]] += 1
    assert all(count == pytest.approx(100, abs=30) for count in best.values())


def test_scores_without_groups_apply_to_all_groups():
    true = {("", "a"): 0.0, ("", "b"): 2.0, ("", "c;"): 1.0}
    fields = dict(simulate_answer(ASKED[:1], true, Behaviour(noise=0), "W", 0.0))
    assert (fields["best-t1"], fields["worst-t1"]) == ("b", "a")


def test_item_without_score_is_reported():
    with pytest.raises(InputError, match="tuple 't1': no true score for 'b'"):
        simulate_answer(
            ASKED, {key: v for key, v in TRUE.items() if key != ("d1", "b")}, Behaviour(), "W", 0
        )


def test_invalid_behaviour_is_refused():
    with pytest.raises(ValueError, match=r"careless is 1.5.*\n.*noise is -1"):
        Behaviour(careless=1.5, noise=-1)
    with pytest.raises(ValueError, match="returns is 1; expected less"):
        Behaviour(returns=1)


def test_truth_from_dialogues_or_scores(files, tmp_path):
    truth = read_truth(files.dialogues)
    assert truth["d3", "d3-1"] == 1.0
    assert truth["d5", "d5-2"] == -0.5
    scores = tmp_path / "scores.csv"
    scores.write_text("item,group,score,appearances,best,worst\na,d1,0.5,2,1,0\n")
    assert read_truth(scores) == {("d1", "a"): 0.5}
    files.dialogues.write_text(
        json.dumps(json.loads(files.dialogues.read_text().splitlines()[0])).replace(
            '"intended": 3', '"intended": null'
        )
    )
    with pytest.raises(InputError, match=r"1 candidates without an intended level .*d3, d3-2"):
        read_truth(files.dialogues)


def test_links_from_list_or_table(tmp_path):
    path = tmp_path / "links"
    path.write_text("worker,link\nAX,http://h/enter?token=1\nhttp://h/enter?token=2\n\n")
    assert read_links(path) == ["http://h/enter?token=1", "http://h/enter?token=2"]
    path.write_text("worker,link\nAX,\n")
    with pytest.raises(InputError, match="links:2: missing link"):
        read_links(path)


@pytest.fixture
def study(running, files, tmp_path):
    """The small study, published without qualifications, with three assignments per HIT."""
    settings = Settings(assignments=3, approval_rate_above=-1)
    with Ledger.open(tmp_path / "ledger.db", create=True) as book:
        book.start_study(running.url, settings, files.plans(settings), 0.0)
        create_hits(connect(resolve(running.url)), book)
    return running


def submitted(running):
    return running.rows("SELECT worker_id, hit_id FROM assignment WHERE status = 'Submitted'")


def test_workers_complete_all_hits_once(study, files):
    done = simulate_workers(
        study.url, simulated_worker_ids(4), read_truth(files.dialogues), Behaviour()
    )
    rows = submitted(study)
    assert len(rows) == len(set(rows)) == done.counts["submitted"] == 6  # 2 HITs x 3 assignments
    assert Counter(worker for worker, _ in rows) == done.by_worker
    assert set(done.by_worker) <= set(simulated_worker_ids(4))
    assert not done.refusals
    kinds = done.quantiles()
    assert kinds["submit"]["n"] == kinds["question"]["n"] == 6
    assert kinds["all"]["n"] == sum(row["n"] for kind, row in kinds.items() if kind != "all")


def test_simulated_answers_are_collected(study, files):
    simulate_workers(
        study.url, simulated_worker_ids(3), read_truth(files.dialogues), Behaviour(noise=0)
    )
    client = connect(resolve(study.url))
    best = {}
    for hit in client.list_hits()["HITs"]:
        for assignment in client.list_assignments_for_hit(HITId=hit["HITId"])["Assignments"]:
            fields = answers.from_xml(assignment["Answer"])
            assert find_problems(answers.expected_tuples(hit["Question"]), fields) == []
            assert dict(fields)["comment"] == "simulated"
            best |= {name: value for name, value in fields if name.startswith("best-")}
    assert best == {"best-t1": "d3-1", "best-t2": "d5-1", "best-t3": "d3-1", "best-t4": "d5-1"}


def test_returned_hits_are_completed(study, files):
    done = simulate_workers(
        study.url,
        simulated_worker_ids(3),
        read_truth(files.dialogues),
        Behaviour(returns=0.5, seed=1),
    )
    assert done.counts["submitted"] == 6
    assert done.counts["returned"] > 0


def test_abandoning_worker_leaves(study, files):
    done = simulate_workers(
        study.url, simulated_worker_ids(3), read_truth(files.dialogues), Behaviour(abandons=1.0)
    )
    assert (done.counts["abandoned"], done.counts["submitted"]) == (3, 0)
    assert len(study.rows("SELECT 1 FROM assignment WHERE status = 'Accepted'")) == 3


def test_accepted_hits_of_interrupted_simulation_are_completed(study, files):
    from mturk.service.rules.work import WorkerService

    truth = read_truth(files.dialogues)
    simulate_workers(study.url, simulated_worker_ids(3), truth, Behaviour(abandons=1.0))
    work = WorkerService(study.database, study.clock)
    for (hit_id,) in study.rows("SELECT hit_id FROM hit"):
        for worker in simulated_worker_ids(3):  # every place is taken: nothing is offered any more
            work.accept(worker, hit_id)
    assert not work.offers("ASIMULATED1")
    done = simulate_workers(study.url, simulated_worker_ids(3), truth, Behaviour())
    assert done.counts["submitted"] == 6
    assert len(submitted(study)) == 6


def test_foreign_hits_are_ignored(study, files):
    client = connect(resolve(study.url))
    hit_type_id = client.create_hit_type(
        Title="Other", Description="Other", Reward="0.01", AssignmentDurationInSeconds=600
    )["HITTypeId"]
    from mturk.question_xml import write_html_question

    page = "<!DOCTYPE html><p>What is this?</p><form><input name='a'></form>"
    client.create_hit_with_hit_type(
        HITTypeId=hit_type_id, Question=write_html_question(page), MaxAssignments=5,
        LifetimeInSeconds=600,
    )  # fmt: skip
    done = simulate_workers(
        study.url, simulated_worker_ids(3), read_truth(files.dialogues), Behaviour()
    )
    assert done.counts["submitted"] == 6
    assert done.counts["foreign"] <= 3
    assert len(submitted(study)) == 6


@pytest.mark.parametrize(("times", "submitted"), [(1, 6), (2, 0)])
def test_failed_question_is_not_foreign(study, files, monkeypatch, times, submitted):
    seen, get = Counter(), WebClient.get

    def failing(visitor, url):
        page = get(visitor, url)
        seen[url] += "assignmentId=" in url
        broken = "assignmentId=" in url and seen[url] <= times
        return replace(page, status=502, text="Bad Gateway") if broken else page

    monkeypatch.setattr(WebClient, "get", failing)
    done = simulate_workers(
        study.url, simulated_worker_ids(3), read_truth(files.dialogues), Behaviour()
    )
    assert (done.counts["submitted"], done.counts["foreign"]) == (submitted, 0)
    assert done.counts["refused"] >= 3


def test_work_that_another_worker_took_first_is_no_refusal(study, files, monkeypatch):
    post, truth = WebClient.post, read_truth(files.dialogues)
    others = iter(["ASIMULATED7", "ASIMULATED8", "ASIMULATED9"])

    def late(visitor, url, fields):
        if url == "/work/accept" and (other := next(others, None)):  # between list and request
            simulate_workers(study.url, [other], truth, Behaviour())
        return post(visitor, url, fields)

    monkeypatch.setattr(WebClient, "post", late)
    done = simulate_workers(study.url, simulated_worker_ids(1), truth, Behaviour())
    assert done.counts["taken"] >= 1
    assert (done.counts["refused"], done.refusals) == (0, Counter())


def test_workers_in_other_countries_find_no_work(running, files, tmp_path):
    settings = Settings(assignments=1)
    with Ledger.open(tmp_path / "ledger.db", create=True) as book:
        book.start_study(running.url, settings, files.plans(settings), 0.0)
        create_hits(connect(resolve(running.url)), book)
    done = simulate_workers(running.url, simulated_worker_ids(1), {}, Behaviour(country="FR"))
    assert done.counts["submitted"] == 0
    assert submitted(running) == []


def test_first_error_stops_all_workers(study):
    with pytest.raises(InputError, match="no true score"):
        simulate_workers(study.url, simulated_worker_ids(5), {}, Behaviour())


def test_unreachable_site_is_reported(monkeypatch):
    monkeypatch.setattr("mturk.study.simulated_browser.MAX_ATTEMPTS", 2)
    with pytest.raises(UnreachableError, match="does not respond"):
        simulate_workers("http://127.0.0.1:1", simulated_worker_ids(2), {}, Behaviour())


def simulate(*arguments):
    return CliRunner().invoke(main, ["simulate", *map(str, arguments)])


def test_simulate_command(study, files):
    done = simulate("--truth", files.dialogues, "--workers", 3, "--endpoint", study.url, "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["simulated"] is True
    assert document["counts"]["submitted"] == sum(document["by_worker"].values()) == 6
    again = simulate("--truth", files.dialogues, "--workers", 3, "--endpoint", study.url)
    assert f"simulated at {study.url}: nothing" in again.output


def test_command_refuses_invalid_arguments(files, tmp_path):
    assert simulate("--truth", files.dialogues).exit_code == 2
    amazon = simulate("--truth", files.dialogues, "--workers", 1, "--endpoint", "sandbox")
    assert amazon.exit_code == 2
    assert "not allowed at Amazon" in amazon.stderr
    links = tmp_path / "links.txt"
    links.write_text("http://h/enter?token=1\n")
    few = simulate("--truth", files.dialogues, "--workers", 2, "--links", links)
    assert few.exit_code == 2
    assert "contains 1 links" in few.stderr


def test_entry_by_personal_links(study, files, tmp_path):
    from mturk.service.site.links import worker_link

    links = tmp_path / "links.txt"
    links.write_text(
        "".join(
            f"{worker_link(study.url, study.database.secret(), f'AONE{n}')}\n" for n in range(3)
        )
    )
    done = simulate("--truth", files.dialogues, "--links", links, "--endpoint", study.url)
    assert done.exit_code == 0, done.output
    assert {worker for worker, _ in submitted(study)} == {"AONE0", "AONE1", "AONE2"}
