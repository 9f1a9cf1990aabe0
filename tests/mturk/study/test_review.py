import csv
import io
from dataclasses import replace
from decimal import Decimal

import pytest

from bws.annotators import annotator_report
from bws.base.problems import InputError
from mturk.study.actions import (
    RefusedError,
    execute_actions,
    make_action,
    supersede_reviews,
    unfinished_actions,
)
from mturk.study.bonus import bonus_price, pay_bonus, read_bonuses
from mturk.study.client import ServiceError
from mturk.study.review import (
    Decision,
    execute_review,
    pending_reviews,
    plan_reviews,
    read_decisions,
    review_csv,
)
from mturk.study.valid_answers import read_valid_answers


@pytest.fixture
def answered(study):
    """The study with four submitted assignments; `ids` are their ids."""
    study.ids = list(study.submit_all(["A1", "A2"]).values())
    study.collect()
    return study


def decide(study, decisions, **options):
    actions, before = plan_reviews(study.book, decisions, **options)
    done = execute_actions(
        study.book, actions, lambda one: execute_review(study.client, one), clock=study.now
    )
    study.collect()
    return done, before


def statuses(study):
    return {assignment.assignment_id: assignment.status for assignment in study.book.assignments()}


def test_decisions_are_executed_and_recorded(answered):
    first, second, *others = answered.ids
    done, before = decide(
        answered, [Decision(first, "approve", ""), Decision(second, "reject", "geraten; „nein“")]
    )
    assert ([one.kind for one in done.done], before, done.refused) == (["approve", "reject"], 0, ())
    assert statuses(answered) == {
        first: "Approved", second: "Rejected", **dict.fromkeys(others, "Submitted")
    }  # fmt: skip
    assert answered.assignment(second)["RequesterFeedback"] == "geraten; „nein“"


def test_repeated_decisions_make_no_calls(answered):
    decisions = [
        Decision(answered.ids[0], "approve", ""),
        Decision(answered.ids[1], "reject", "no"),
    ]
    decide(answered, decisions)
    answered.running.faults.calls.clear()
    actions, before = plan_reviews(answered.book, decisions)
    assert (actions, before, answered.running.faults.calls) == ([], 2, [])


def test_override_requires_option(answered):
    first = answered.ids[0]
    decide(answered, [Decision(first, "reject", "no")])
    with pytest.raises(InputError, match=f"{first} is rejected; expected --override-rejections"):
        plan_reviews(answered.book, [Decision(first, "approve", "")])
    done, _ = decide(answered, [Decision(first, "approve", "sorry")], override=True)
    assert len(done.done) == 1
    there = answered.assignment(first)
    assert (there["AssignmentStatus"], there["RequesterFeedback"]) == ("Approved", "sorry")


def test_invalid_decisions_are_reported_together(answered):
    first, second = answered.ids[:2]
    decide(answered, [Decision(first, "approve", "")])
    with pytest.raises(InputError) as caught:
        plan_reviews(
            answered.book,
            [
                Decision(first, "reject", "no"),
                Decision("3NONE", "approve", ""),
                Decision(second, "reject", ""),
                Decision(second, "reject", "x" * 1025),
            ],
        )
    assert [problem.message for problem in caught.value.problems] == [
        f"assignment {first} is approved, which cannot be revoked",
        f"unknown assignment 3NONE; expected one in {answered.path}",
        "RequesterFeedback is empty; expected feedback for the worker with a rejection",
        "RequesterFeedback has 1025 characters; expected 0 to 1024",
    ]
    assert answered.book.actions("meant") == ()


@pytest.mark.parametrize("fault", ["error after", "drop after", "error", "throttled"])
def test_decision_with_lost_response_is_executed_once(answered, fault):
    lost = [fault]

    def choose(operation, number):
        return lost.pop() if lost and operation == "RejectAssignment" else None

    answered.running.faults.choose = choose
    done, _ = decide(answered, [Decision(answered.ids[0], "reject", "no")])
    assert done.refused == ()
    assert statuses(answered)[answered.ids[0]] == "Rejected"
    assert [action.state for action in answered.book.actions()] == ["done"]


def test_refused_decision_does_not_stop_others(answered):
    first, second = answered.ids[:2]
    answered.client.approve_assignment(AssignmentId=first)  # by another program; not collected yet
    actions, _ = plan_reviews(
        answered.book, [Decision(first, "reject", "no"), Decision(second, "reject", "no")]
    )
    done = execute_actions(answered.book, actions, lambda one: execute_review(answered.client, one))
    assert [one.target for one in done.done] == [second]
    ((refused, why),) = done.refused
    assert (refused.target, "InvalidAssignmentState" in why) == (first, True)
    assert {action.target: action.state for action in answered.book.actions()} == {
        first: "failed", second: "done"
    }  # fmt: skip


def test_decisions_stay_unfinished_without_service(answered):
    answered.running.faults.choose = lambda operation, number: "error"
    actions, _ = plan_reviews(
        answered.book, [Decision(assignment_id, "approve", "") for assignment_id in answered.ids]
    )
    with pytest.raises(ServiceError):
        execute_actions(answered.book, actions, lambda one: execute_review(answered.client, one))
    left = unfinished_actions(answered.book, "approve")
    assert sorted(one.state for one in left) == ["meant", "meant", "meant", "sent"]
    answered.running.faults.choose = lambda operation, number: None
    done = execute_actions(answered.book, left, lambda one: execute_review(answered.client, one))
    assert len(done.done) == 4


def test_new_decision_supersedes_unfinished_one(answered):
    first, second = answered.ids[:2]
    old, _ = plan_reviews(answered.book, [Decision(one, "approve", "") for one in (first, second)])
    answered.book.plan_actions(old, answered.now())  # and here it was interrupted
    new, _ = plan_reviews(answered.book, [Decision(first, "reject", "no")])
    supersede_reviews(answered.book, new, answered.now())
    assert [action.target for action in unfinished_actions(answered.book, "approve", "reject")] == [
        second
    ]


# Sheets


def sheet(tmp_path, *rows, header="AssignmentId,Approve,Reject,RequesterFeedback", name="d.csv"):
    path = tmp_path / name
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return path


def test_marked_rows_are_decisions(tmp_path):
    path = sheet(
        tmp_path,
        "a1,x,,",
        'a2,,X,"too fast; ""really"""',
        "a3,,,seen",
        "a4,,wrong language,",
        "a5,x,,thanks",
    )
    result = read_decisions(path)
    assert result.unmarked == 1
    assert [
        (decision.assignment_id, decision.kind, decision.feedback) for decision in result.decisions
    ] == [
        ("a1", "approve", ""),
        ("a2", "reject", 'too fast; "really"'),
        ("a4", "reject", "wrong language"),  # as the requester's site has it
        ("a5", "approve", "thanks"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        '\ufeff"AssignmentId";"Approve";"Reject";"RequesterFeedback"\r\n"a1";"x";"";"gut, danke"\r\n',
        "WorkerId\tAssignmentId\tReject\tApprove\tRequesterFeedback\nw\ta1\t\tX\tgut, danke\n",
    ],
    ids=["semicolons", "tabs"],
)
def test_review_sheets_in_spreadsheet_formats(tmp_path, text):
    path = tmp_path / "d.csv"
    path.write_bytes(text.encode("utf-8"))
    (one,) = read_decisions(path).decisions
    assert (one.assignment_id, one.kind, one.feedback) == ("a1", "approve", "gut, danke")


def test_all_invalid_rows_are_reported(tmp_path):
    path = sheet(
        tmp_path,
        "a1,x,x,",
        "a2,,x,",
        "a3,maybe,,",
        ",x,,",
        "a4,x,,",
        "a4,,x,no",
        f"a5,,x,{'y' * 1025}",
    )
    with pytest.raises(InputError) as caught:
        read_decisions(path)
    assert [f"{problem.line}: {problem.message}" for problem in caught.value.problems] == [
        "2: Approve and Reject are both marked; expected one of them",
        "3: RequesterFeedback is empty; expected feedback for the worker with a rejection",
        "4: Approve is 'maybe'; expected x or an empty cell",
        "5: AssignmentId is empty",
        "7: repeats the AssignmentId 'a4' of line 6; each must be unique",
        "8: RequesterFeedback has 1025 characters; expected 0 to 1024",
    ]


def test_other_file_is_refused(tmp_path):
    with pytest.raises(
        InputError, match=r"has the columns x, y; expected AssignmentId, Approve, Reject"
    ):
        read_decisions(sheet(tmp_path, "1,2", header="x,y"))


def test_review_sheet_round_trip(study, tmp_path):
    first = study.hit_ids()[0]
    fields = [
        (name, value) if not name.startswith("worst-") else (name, "")
        for name, value in study.fields(first, comment='=HYPERLINK("x"), „ja“\nzwei')
    ]
    its_id = study.submit("A1", first, [*fields, ("german-kino", "aber")], after=42.0)
    other = study.submit("A2", first)
    study.collect()
    result = read_valid_answers(study.book)
    rows = pending_reviews(study.book, result, annotator_report(result.judgments))
    assert [row.assignment.assignment_id for row in rows] == [its_id, other]
    text = review_csv(rows, lambda at: "" if at is None else f"{at:.0f}")
    mine, others = csv.DictReader(io.StringIO(text))
    assert mine["AssignmentId"] == its_id
    assert (mine["WorkTimeInSeconds"], mine["comment"]) == ("42", '=HYPERLINK("x"), „ja“\nzwei')
    assert "worst is missing" in mine["faults"]
    assert "wrong answer to the language check" in mine["faults"]
    assert (mine["compliance"], others["faults"]) == ("", "")
    path = tmp_path / "d.csv"
    path.write_text(text, encoding="utf-8")
    assert read_decisions(path).decisions == ()
    path.write_text(text.replace(",,,\n", ",x,,\n"), encoding="utf-8")  # the last three columns
    assert {decision.assignment_id for decision in read_decisions(path).decisions} == {
        its_id,
        other,
    }


# Bonuses


def bonuses(tmp_path, *rows, name="b.csv"):
    return sheet(tmp_path, *rows, header="assignment_id,amount,reason", name=name)


def paid(study):
    return sorted(
        (payment["AssignmentId"], payment["BonusAmount"], payment["Reason"])
        for hit_id in study.hit_ids()
        for payment in study.bonuses(hit_id)
    )


def pay_all(study, actions):
    return execute_actions(
        study.book, actions, lambda one: pay_bonus(study.client, one), clock=study.now
    )


def test_bonus_is_paid_once(answered, tmp_path):
    first, second = answered.ids[:2]
    path = bonuses(
        tmp_path, f'{first},0.5,"gut, „sehr“"', f"{second},$1.00,gut", f"{first},0.25,more"
    )
    actions = read_bonuses(path, answered.book)
    cost = bonus_price(actions)
    # 0.50 + 1.00 + 0.25, and a fee of 20 %: 0.10 + 0.20 + 0.05
    assert (cost.bonuses, cost.fees, cost.total) == (
        Decimal("1.75"), Decimal("0.35"), Decimal("2.10")
    )  # fmt: skip
    expected = sorted(
        [(first, "0.50", "gut, „sehr“"), (second, "1.00", "gut"), (first, "0.25", "more")]
    )
    assert len(pay_all(answered, actions).done) == 3
    assert paid(answered) == expected
    assert len(pay_all(answered, read_bonuses(path, answered.book)).already_done) == 3
    assert paid(answered) == expected


@pytest.mark.parametrize("later", [0, 25 * 3600], ids=["at once", "after the token is forgotten"])
@pytest.mark.parametrize("state", ["sent", "lost"])
def test_bonus_missing_in_ledger_is_not_paid_again(answered, tmp_path, later, state):
    path = bonuses(tmp_path, f"{answered.ids[0]},0.50,gut")
    actions = read_bonuses(path, answered.book)
    pay_all(answered, actions)
    answered.running.clock.advance(later)
    with answered.book.transaction() as connection:  # as after a crash, or from an old backup
        if state == "lost":
            connection.execute("DELETE FROM action")
        else:
            connection.execute("UPDATE action SET state = 'sent'")
    done = pay_all(answered, actions)
    assert (done.done, len(done.already_done)) == ((), 1)
    assert len(paid(answered)) == 1


@pytest.mark.parametrize("fault", ["error after", "drop after"])
def test_bonus_with_lost_response_is_paid_once(answered, tmp_path, fault):
    lost = [fault]
    answered.running.faults.choose = lambda operation, number: (
        lost.pop() if lost and operation == "SendBonus" else None
    )
    done = pay_all(
        answered, read_bonuses(bonuses(tmp_path, f"{answered.ids[0]},0.50,gut"), answered.book)
    )
    assert done.refused == ()
    assert len(paid(answered)) == 1


def test_all_invalid_bonuses_are_reported(answered, tmp_path):
    first = answered.ids[0]
    path = bonuses(
        tmp_path, f"{first},0.50,gut", f"{first},0.5,gut", "3X,0.50,gut", f'{first},"0,50",gut',
        f"{first},0,gut", f"{first},1.00,",
    )  # fmt: skip
    with pytest.raises(InputError) as caught:
        read_bonuses(path, answered.book)
    assert [f"{problem.line}: {problem.message}" for problem in caught.value.problems] == [
        "3: repeats the bonus of line 2; expected different reasons if both are intended",
        f"4: unknown assignment '3X'; expected one in {answered.path}",
        "5: amount is '0,50'; expected dollars with at most two decimals, such as '0.25'",
        "6: amount is 0; expected at least 0.01",
        "7: reason: Reason has 0 characters; expected 1 to 4096",
    ]


def test_bonus_above_balance_can_be_paid_later(answered, tmp_path):
    actions = read_bonuses(bonuses(tmp_path, f"{answered.ids[0]},99999.00,gut"), answered.book)
    with answered.running.database.write() as connection:
        from sqlalchemy import text

        connection.execute(text("UPDATE account SET available = 100"))
    ((_, why),) = pay_all(answered, actions).refused
    assert "InsufficientFunds" in why
    with answered.running.database.write() as connection:
        connection.execute(text("UPDATE account SET available = 100000000"))
    assert len(pay_all(answered, actions).done) == 1


def test_token_depends_on_content():
    one = make_action("bonus", "3A", "0.50", "gut")
    assert len(one.token) <= 64
    assert one == make_action("bonus", "3A", "0.50", "gut")
    others = [("bonus", "3B", "0.50", "gut"), ("bonus", "3A", "0.51", "gut"),
              ("bonus", "3A", "0.50", "guT"), ("approve", "3A", "0.50", "gut")]  # fmt: skip
    assert len({one.token, *(make_action(*other).token for other in others)}) == 5


def test_refused_action_is_retried(study):
    one = make_action("approve", "3A")
    tries = []

    def refuse(given):
        tries.append(given)
        if len(tries) == 1:
            raise RefusedError("no")
        return True

    assert execute_actions(study.book, [one], refuse).refused == ((one, "no"),)
    assert execute_actions(study.book, [one], refuse).done == (one,)
    assert execute_actions(study.book, [one], refuse).already_done == (one,)
    assert [replace(t, state="meant", at=0.0) for t in tries] == [one, one]
