"""A requester for tests: unmodified boto3, and workers controlled by the test."""

from dataclasses import dataclass, field
from functools import cached_property

import pytest
import urllib3
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import get_session

SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas"
QUESTION = (
    f'<HTMLQuestion xmlns="{SCHEMAS}/2011-11-11/HTMLQuestion.xsd">'
    "<HTMLContent><![CDATA[<p>Grüße & <b>more</b></p>]]></HTMLContent>"
    "<FrameHeight>0</FrameHeight></HTMLQuestion>"
)
KIND = {
    "Title": "Which is most similar?",
    "Description": "Compare three utterances",
    "Reward": "0.25",
    "AssignmentDurationInSeconds": 600,
}
HIT = KIND | {"LifetimeInSeconds": 86_400, "Question": QUESTION}
QUALIFICATION = {
    "Name": "Reads German",
    "Description": "Can read German dialogues",
    "QualificationTypeStatus": "Active",
}
PREFIX = "AWS.MechanicalTurk."
TARGET = "MTurkRequesterServiceV20170117."


@dataclass
class Requester:
    """A requester of a running service, with actions of its workers."""

    service: object
    http: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(timeout=300))

    @cached_property
    def boto(self):
        return self.service.client()

    @cached_property
    def unchecking(self):
        """Return a client without parameter validation."""
        return self.service.client(config=Config(parameter_validation=False))

    @property
    def clock(self):
        return self.service.clock

    @property
    def work(self):
        return self.service.work

    def hit(self, **more):
        """Create a HIT; return its id."""
        return self.boto.create_hit(**HIT | more)["HIT"]["HITId"]

    def get(self, hit_id):
        return self.boto.get_hit(HITId=hit_id)["HIT"]

    def accept(self, worker, hit_id):
        """Return the id of the worker's assignment."""
        self.work.register(worker)
        return self.work.accept(worker, hit_id).assignment_id

    def submit(self, worker, hit_id, fields=(("answer", "yes"),)):
        """Accept and submit; return the assignment's id."""
        assignment_id = self.accept(worker, hit_id)
        assert self.work.submit(assignment_id, worker, list(fields))
        return assignment_id

    def balance(self):
        """Return the available amount and the amount on hold, as strings."""
        result = self.boto.get_account_balance()
        return result["AvailableBalance"], result["OnHoldBalance"]

    def qualification(self, **more):
        """Create a qualification type; return its id."""
        made = self.boto.create_qualification_type(**QUALIFICATION | more)
        return made["QualificationType"]["QualificationTypeId"]

    def grant(self, worker, type_id, value=1):
        self.boto.associate_qualification_with_worker(
            QualificationTypeId=type_id, WorkerId=worker, IntegerValue=value
        )

    def refused(self, operation, **parameters):
        """Return the error code (without prefix) and message of a refused call."""
        with pytest.raises(ClientError) as caught:
            getattr(self.unchecking, operation)(**parameters)
        answer = caught.value.response
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 400
        assert answer["Error"]["Code"] == "RequestError"
        assert answer["Error"]["Message"] == answer["Message"]
        assert isinstance(caught.value, self.unchecking.exceptions.RequestError)
        return answer["TurkErrorCode"].removeprefix(PREFIX), answer["Message"]

    def code(self, operation, **parameters):
        return self.refused(operation, **parameters)[0]

    def post(self, operation, body, headers=None):
        """Send raw bytes; return status, headers and body."""
        target = {"X-Amz-Target": TARGET + operation, "Content-Type": "application/x-amz-json-1.1"}
        sent = target if headers is None else headers
        result = self.http.request("POST", self.service.api, body=body, headers=sent, retries=False)
        return result.status, dict(result.headers), result.data


def service_model():
    """Return botocore's model of the service."""
    return get_session().get_service_model("mturk")
