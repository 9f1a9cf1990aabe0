"""HITs through unmodified boto3: made, shown, listed, extended, expired, deleted."""

from datetime import UTC, datetime, timedelta

import pytest

LOCALE = "00000000000000000071"
GERMANY = {
    "QualificationTypeId": LOCALE,
    "Comparator": "EqualTo",
    "LocaleValues": [{"Country": "DE"}],
    "ActionsGuarded": "DiscoverPreviewAndAccept",
}


def at(seconds):
    return datetime.fromtimestamp(seconds, UTC)


def test_a_hit_comes_back_with_all_that_was_said(requester, made):
    said = made.HIT | {
        "Keywords": "dialogue, German",
        "RequesterAnnotation": "item 7: „ä“",
        "MaxAssignments": 5,
        "AutoApprovalDelayInSeconds": 3600,
        "QualificationRequirements": [GERMANY],
    }
    answer = requester.boto.create_hit(**said)["HIT"]
    now = at(requester.clock.now())
    lifetime = said.pop("LifetimeInSeconds")
    assert {name: answer[name] for name in said} == said
    assert answer["CreationTime"] == now
    assert answer["Expiration"] == now + timedelta(seconds=lifetime)
    assert answer["HITStatus"] == "Assignable"
    assert answer["HITReviewStatus"] == "NotReviewed"
    counts = ("Pending", "Available", "Completed")
    assert [answer[f"NumberOfAssignments{one}"] for one in counts] == [0, 5, 0]
    assert requester.get(answer["HITId"]) == answer
    ids = [answer["HITId"], answer["HITTypeId"], answer["HITGroupId"]]
    assert len(set(ids)) == 3


def test_what_is_left_out_has_its_default(shared):
    found = shared.get(shared.hit())
    assert found["MaxAssignments"] == 1
    assert found["AutoApprovalDelayInSeconds"] == 30 * 86_400
    assert found["QualificationRequirements"] == []
    assert found["Keywords"] == ""
    assert "RequesterAnnotation" not in found


def test_equal_values_make_one_type_and_others_another(shared, made):
    first = shared.boto.create_hit_type(**made.KIND)["HITTypeId"]
    delay = shared.boto.create_hit_type(**made.KIND, AutoApprovalDelayInSeconds=30 * 86_400)
    assert delay["HITTypeId"] == first  # the default
    others = [
        {name: value + 1 if isinstance(value, int) else f"1{value}"}
        for name, value in made.KIND.items()
    ]
    others += [{"Keywords": "k"}, {"QualificationRequirements": [GERMANY]}]
    ids = [shared.boto.create_hit_type(**made.KIND | one)["HITTypeId"] for one in others]
    assert len({first, *ids}) == len(others) + 1


def test_a_reward_is_written_with_two_decimals(shared):
    said = ["1", "1.", "1.5", "01.50", "0"]
    rewards = [shared.get(shared.hit(Reward=one))["Reward"] for one in said]
    assert rewards == ["1.00", "1.00", "1.50", "1.50", "0.00"]


def test_a_hit_of_a_type(shared, made):
    kind = shared.boto.create_hit_type(**made.KIND | {"Title": "of a type"})["HITTypeId"]
    answers = [
        shared.boto.create_hit_with_hit_type(
            HITTypeId=kind, LifetimeInSeconds=60, Question=made.QUESTION
        )["HIT"]
        for _ in range(2)
    ]
    assert [one["Title"] for one in answers] == ["of a type"] * 2
    assert len({one["HITGroupId"] for one in answers}) == 1
    assert len({one["HITId"] for one in answers}) == 2
    assert all(one["Question"] == made.QUESTION for one in answers)


def test_a_token_makes_one_hit_and_names_it(shared, made):
    first = shared.hit(UniqueRequestToken="token-1")
    code, message = shared.refused("create_hit", **made.HIT, UniqueRequestToken="token-1")
    assert code == "HITAlreadyExists"
    assert first in message
    other = made.HIT | {"Title": "another"}
    assert shared.refused("create_hit", **other, UniqueRequestToken="token-1") == (code, message)
    assert shared.hit(UniqueRequestToken="token-2") != first


def test_questions_of_other_kinds(shared, made):
    external = (
        f'<ExternalQuestion xmlns="{made.SCHEMAS}/2006-07-14/ExternalQuestion.xsd"><ExternalURL>'
        "https://example.org/q?a=1&amp;b=2</ExternalURL><FrameHeight>400</FrameHeight>"
        "</ExternalQuestion>"
    )
    form = (
        f'<QuestionForm xmlns="{made.SCHEMAS}/2017-11-06/QuestionForm.xsd"><Question>'
        "<QuestionIdentifier>q</QuestionIdentifier><QuestionContent><Text>?</Text></QuestionContent>"
        "<AnswerSpecification><FreeTextAnswer/></AnswerSpecification></Question></QuestionForm>"
    )
    for question in (external, form):
        assert shared.get(shared.hit(Question=question))["Question"] == question


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("", "0 bytes"),
        ("hello", "not well-formed"),
        ("<a/>", "expected HTMLQuestion, ExternalQuestion or QuestionForm"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "document type"),
        ("<a>🙂</a>", "numeric entities"),
    ],
)
def test_a_question_that_is_none(shared, made, question, reason):
    code, message = shared.refused("create_hit", **made.HIT | {"Question": question})
    assert code == "ParameterValidationError"
    assert reason in message


def test_layouts_are_refused(shared, made):
    asked = {name: value for name, value in made.HIT.items() if name != "Question"}
    assert shared.code("create_hit", **asked, HITLayoutId="3LAYOUT") == "HITLayoutDoesNotExist"
    assert shared.code("create_hit", **asked) == "ParameterValidationError"


@pytest.mark.parametrize("policy", ["AssignmentReviewPolicy", "HITReviewPolicy"])
def test_review_policies_are_refused(shared, made, policy):
    asked = made.HIT | {policy: {"PolicyName": "SimplePlurality/2011-09-01"}}
    assert shared.code("create_hit", **asked) == "UnsupportedReviewPolicy"
    hit_id = shared.hit()
    found = shared.boto.list_review_policy_results_for_hit(
        HITId=hit_id, PolicyLevels=["HIT"], RetrieveActions=True, RetrieveResults=True
    )
    assert found["HITId"] == hit_id
    assert "HITReviewReport" not in found


def test_hits_are_listed_newest_first_without_deleted_ones(requester):
    ids = [requester.hit(RequesterAnnotation=str(number)) for number in range(3)]
    requester.boto.update_expiration_for_hit(HITId=ids[1], ExpireAt=at(0))
    requester.boto.delete_hit(HITId=ids[1])
    found = requester.boto.list_hits()
    assert [one["HITId"] for one in found["HITs"]] == [ids[2], ids[0]]
    assert found["NumResults"] == 2
    assert "NextToken" not in found
    assert requester.get(ids[1])["HITStatus"] == "Disposed"
    assert found["HITs"][0] == requester.get(ids[2])


def test_reviewable_hits_by_status_and_type(requester):
    ids = [requester.hit(Title=title) for title in "abc"]
    for hit_id in ids[:2]:
        requester.submit("A1", hit_id)
    requester.boto.update_hit_review_status(HITId=ids[0])

    def listed(**which):
        return [one["HITId"] for one in requester.boto.list_reviewable_hits(**which)["HITs"]]

    assert listed() == listed(Status="Reviewable") == [ids[1]]
    assert listed(Status="Reviewing") == [ids[0]]
    kinds = [requester.get(hit_id)["HITTypeId"] for hit_id in ids]
    assert listed(HITTypeId=kinds[1]) == [ids[1]]
    assert listed(HITTypeId=kinds[2]) == []
    assert listed(HITTypeId=kinds[0], Status="Reviewing") == [ids[0]]


def test_hits_that_ask_for_a_qualification(requester):
    type_id = requester.qualification()
    asking = [{"QualificationTypeId": type_id, "Comparator": "Exists"}]
    ids = [requester.hit(QualificationRequirements=asking) for _ in range(2)]
    requester.hit()
    found = requester.boto.list_hits_for_qualification_type(QualificationTypeId=type_id)
    assert [one["HITId"] for one in found["HITs"]] == ids[::-1]
    unknown = requester.code("list_hits_for_qualification_type", QualificationTypeId="3NO")
    assert unknown == "QualificationTypeDoesNotExist"


def test_a_hit_takes_on_another_type(shared, made):
    hit_id = shared.hit(MaxAssignments=2)
    kind = shared.boto.create_hit_type(**made.KIND | {"Title": "better", "Reward": "0.50"})
    shared.boto.update_hit_type_of_hit(HITId=hit_id, HITTypeId=kind["HITTypeId"])
    found = shared.get(hit_id)
    assert (found["Title"], found["Reward"]) == ("better", "0.50")
    assert found["HITTypeId"] == kind["HITTypeId"]
    assert found["Question"] == made.QUESTION
    unknown = {"HITId": hit_id, "HITTypeId": "3NO"}
    assert shared.code("update_hit_type_of_hit", **unknown) == "HITTypeDoesNotExist"


def test_more_assignments_and_their_token(shared):
    hit_id = shared.hit(MaxAssignments=2)
    more = {"HITId": hit_id, "NumberOfAdditionalAssignments": 3, "UniqueRequestToken": "more-1"}
    shared.boto.create_additional_assignments_for_hit(**more)
    assert shared.get(hit_id)["MaxAssignments"] == 5
    code, message = shared.refused("create_additional_assignments_for_hit", **more)
    assert code == "DuplicateRequest"
    assert "more-1" in message
    assert shared.get(hit_id)["NumberOfAssignmentsAvailable"] == 5


def test_expiration(shared):
    hit_id = shared.hit()
    later = at(shared.clock.now() + 7200)
    shared.boto.update_expiration_for_hit(HITId=hit_id, ExpireAt=later)
    assert shared.get(hit_id)["Expiration"] == later
    shared.boto.update_expiration_for_hit(HITId=hit_id, ExpireAt=at(0))
    found = shared.get(hit_id)
    assert found["HITStatus"] == "Reviewable"
    assert found["Expiration"] == at(shared.clock.now())


@pytest.mark.parametrize(
    ("operation", "more"),
    [
        ("get_hit", {}),
        ("delete_hit", {}),
        ("list_assignments_for_hit", {}),
        ("list_bonus_payments", {}),
        ("list_review_policy_results_for_hit", {}),
        ("update_hit_review_status", {}),
        ("update_expiration_for_hit", {"ExpireAt": at(0)}),
        ("update_hit_type_of_hit", {"HITTypeId": "3NO"}),
        ("create_additional_assignments_for_hit", {"NumberOfAdditionalAssignments": 1}),
    ],
)
def test_a_hit_that_is_not_there(shared, operation, more):
    code, message = shared.refused(operation, HITId="3NONE", **more)
    assert code == "HITDoesNotExist"
    assert "3NONE" in message


def test_a_hit_type_that_is_not_there(shared, made):
    asked = {"HITTypeId": "3NO", "LifetimeInSeconds": 60, "Question": made.QUESTION}
    assert shared.code("create_hit_with_hit_type", **asked) == "HITTypeDoesNotExist"
