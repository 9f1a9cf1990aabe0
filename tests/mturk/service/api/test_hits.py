"""HITs through unmodified boto3: create, get, list, extend, expire, delete."""

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


def test_a_hit_comes_back_with_all_that_was_said(requester, examples):
    values = examples.HIT | {
        "Keywords": "dialogue, German",
        "RequesterAnnotation": "item 7: „ä“",
        "MaxAssignments": 5,
        "AutoApprovalDelayInSeconds": 3600,
        "QualificationRequirements": [GERMANY],
    }
    answer = requester.boto.create_hit(**values)["HIT"]
    now = at(requester.clock.now())
    lifetime = values.pop("LifetimeInSeconds")
    assert {name: answer[name] for name in values} == values
    assert answer["CreationTime"] == now
    assert answer["Expiration"] == now + timedelta(seconds=lifetime)
    assert answer["HITStatus"] == "Assignable"
    assert answer["HITReviewStatus"] == "NotReviewed"
    counts = ("Pending", "Available", "Completed")
    assert [answer[f"NumberOfAssignments{assignment_id}"] for assignment_id in counts] == [0, 5, 0]
    assert requester.get(answer["HITId"]) == answer
    ids = [answer["HITId"], answer["HITTypeId"], answer["HITGroupId"]]
    assert len(set(ids)) == 3


def test_what_is_left_out_has_its_default(shared):
    hit = shared.get(shared.hit())
    assert hit["MaxAssignments"] == 1
    assert hit["AutoApprovalDelayInSeconds"] == 30 * 86_400
    assert hit["QualificationRequirements"] == []
    assert hit["Keywords"] == ""
    assert "RequesterAnnotation" not in hit


def test_equal_values_make_one_type_and_others_another(shared, examples):
    first = shared.boto.create_hit_type(**examples.KIND)["HITTypeId"]
    delay = shared.boto.create_hit_type(**examples.KIND, AutoApprovalDelayInSeconds=30 * 86_400)
    assert delay["HITTypeId"] == first  # the default
    other_ids = [
        {name: value + 1 if isinstance(value, int) else f"1{value}"}
        for name, value in examples.KIND.items()
    ]
    other_ids += [{"Keywords": "k"}, {"QualificationRequirements": [GERMANY]}]
    ids = [
        shared.boto.create_hit_type(**examples.KIND | database)["HITTypeId"]
        for database in other_ids
    ]
    assert len({first, *ids}) == len(other_ids) + 1


def test_a_reward_is_written_with_two_decimals(shared):
    values = ["1", "1.", "1.5", "01.50", "0"]
    rewards = [shared.get(shared.hit(Reward=value))["Reward"] for value in values]
    assert rewards == ["1.00", "1.00", "1.50", "1.50", "0.00"]


def test_a_hit_of_a_type(shared, examples):
    kind = shared.boto.create_hit_type(**examples.KIND | {"Title": "of a type"})["HITTypeId"]
    answers = [
        shared.boto.create_hit_with_hit_type(
            HITTypeId=kind, LifetimeInSeconds=60, Question=examples.QUESTION
        )["HIT"]
        for _ in range(2)
    ]
    assert [answer["Title"] for answer in answers] == ["of a type"] * 2
    assert len({answer["HITGroupId"] for answer in answers}) == 1
    assert len({answer["HITId"] for answer in answers}) == 2
    assert all(answer["Question"] == examples.QUESTION for answer in answers)


def test_a_token_makes_one_hit_and_names_it(shared, examples):
    first = shared.hit(UniqueRequestToken="token-1")
    code, message = shared.refused("create_hit", **examples.HIT, UniqueRequestToken="token-1")
    assert code == "HITAlreadyExists"
    assert first in message
    other = examples.HIT | {"Title": "another"}
    assert shared.refused("create_hit", **other, UniqueRequestToken="token-1") == (code, message)
    assert shared.hit(UniqueRequestToken="token-2") != first


def test_questions_of_other_kinds(shared, examples):
    external = (
        f'<ExternalQuestion xmlns="{examples.SCHEMAS}/2006-07-14/ExternalQuestion.xsd"><ExternalURL>'
        "https://example.org/q?a=1&amp;b=2</ExternalURL><FrameHeight>400</FrameHeight>"
        "</ExternalQuestion>"
    )
    form = (
        f'<QuestionForm xmlns="{examples.SCHEMAS}/2017-11-06/QuestionForm.xsd"><Question>'
        "<QuestionIdentifier>q</QuestionIdentifier><QuestionContent><Text>?</Text></QuestionContent>"
        "<AnswerSpecification><FreeTextAnswer/></AnswerSpecification></Question></QuestionForm>"
    )
    for question in (external, form):
        assert shared.get(shared.hit(Question=question))["Question"] == question


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("hello", "not well-formed"),
        ("<a/>", "expected HTMLQuestion, ExternalQuestion or QuestionForm"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "document type"),
    ],
)
def test_a_question_that_violates_the_schema(shared, examples, question, reason):
    code, message = shared.refused("create_hit", **examples.HIT | {"Question": question})
    assert code == "XMLParseError"
    assert message.startswith("There was an error parsing the XML question or answer data")
    assert reason in message


@pytest.mark.parametrize(
    ("question", "reason"), [("", "0 bytes"), ("<a>🙂</a>", "numeric entities")]
)
def test_a_question_outside_the_limits(shared, examples, question, reason):
    code, message = shared.refused("create_hit", **examples.HIT | {"Question": question})
    assert code == "ParameterValidationError"
    assert reason in message


def test_layouts_are_refused(shared, examples):
    parameters = {name: value for name, value in examples.HIT.items() if name != "Question"}
    assert shared.code("create_hit", **parameters, HITLayoutId="3LAYOUT") == "HITLayoutDoesNotExist"
    assert shared.code("create_hit", **parameters) == "ParameterValidationError"


@pytest.mark.parametrize("policy", ["AssignmentReviewPolicy", "HITReviewPolicy"])
def test_review_policies_are_refused(shared, examples, policy):
    parameters = examples.HIT | {policy: {"PolicyName": "SimplePlurality/2011-09-01"}}
    assert shared.code("create_hit", **parameters) == "UnsupportedReviewPolicy"
    hit_id = shared.hit()
    response = shared.boto.list_review_policy_results_for_hit(
        HITId=hit_id, PolicyLevels=["HIT"], RetrieveActions=True, RetrieveResults=True
    )
    assert response["HITId"] == hit_id
    assert "HITReviewReport" not in response


def test_hits_are_listed_newest_first_without_deleted_ones(requester):
    ids = [requester.hit(RequesterAnnotation=str(number)) for number in range(3)]
    requester.boto.update_expiration_for_hit(HITId=ids[1], ExpireAt=at(0))
    requester.boto.delete_hit(HITId=ids[1])
    response = requester.boto.list_hits()
    assert [hit["HITId"] for hit in response["HITs"]] == [ids[2], ids[0]]
    assert response["NumResults"] == 2
    assert requester.get(ids[1])["HITStatus"] == "Disposed"
    assert response["HITs"][0] == requester.get(ids[2])


def test_reviewable_hits_by_status_and_type(requester):
    ids = [requester.hit(Title=title) for title in "abc"]
    for hit_id in ids[:2]:
        requester.submit("A1", hit_id)
    requester.boto.update_hit_review_status(HITId=ids[0])

    def listed(**which):
        return [hit["HITId"] for hit in requester.boto.list_reviewable_hits(**which)["HITs"]]

    assert listed() == listed(Status="Reviewable") == [ids[1]]
    assert listed(Status="Reviewing") == [ids[0]]
    kinds = [requester.get(hit_id)["HITTypeId"] for hit_id in ids]
    assert listed(HITTypeId=kinds[1]) == [ids[1]]
    assert listed(HITTypeId=kinds[2]) == []
    assert listed(HITTypeId=kinds[0], Status="Reviewing") == [ids[0]]


def test_hits_that_ask_for_a_qualification(requester):
    type_id = requester.qualification()
    requirements = [{"QualificationTypeId": type_id, "Comparator": "Exists"}]
    ids = [requester.hit(QualificationRequirements=requirements) for _ in range(2)]
    requester.hit()
    response = requester.boto.list_hits_for_qualification_type(QualificationTypeId=type_id)
    assert [hit["HITId"] for hit in response["HITs"]] == ids[::-1]
    unknown = requester.code("list_hits_for_qualification_type", QualificationTypeId="3NO")
    assert unknown == "QualificationTypeDoesNotExist"


def test_a_hit_takes_on_another_type(shared, examples):
    hit_id = shared.hit(MaxAssignments=2)
    kind = shared.boto.create_hit_type(**examples.KIND | {"Title": "better", "Reward": "0.50"})
    shared.boto.update_hit_type_of_hit(HITId=hit_id, HITTypeId=kind["HITTypeId"])
    hit = shared.get(hit_id)
    assert (hit["Title"], hit["Reward"]) == ("better", "0.50")
    assert hit["HITTypeId"] == kind["HITTypeId"]
    assert hit["Question"] == examples.QUESTION
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
    hit = shared.get(hit_id)
    assert hit["HITStatus"] == "Reviewable"
    assert hit["Expiration"] == at(shared.clock.now())


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


def test_a_hit_type_that_is_not_there(shared, examples):
    parameters = {"HITTypeId": "3NO", "LifetimeInSeconds": 60, "Question": examples.QUESTION}
    assert shared.code("create_hit_with_hit_type", **parameters) == "HITTypeDoesNotExist"
