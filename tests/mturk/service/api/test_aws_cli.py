"""The unmodified AWS command line with the service."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

AWS = shutil.which("aws", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")

HIT_TYPE = (
    "--title", "Dialoge", "--description", "Zwei Äußerungen", "--reward", "0.25",
    "--assignment-duration-in-seconds", "600",
)  # fmt: skip
pytestmark = pytest.mark.skipif(AWS is None, reason="the AWS command line is not installed")


@pytest.fixture
def aws(service, tmp_path):
    """Return a function that calls `aws mturk ...` and returns its output."""
    environment = os.environ | {
        "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": str(tmp_path / "none"), "AWS_PAGER": "",
    }  # fmt: skip

    def call(*arguments, fails=False):
        done = subprocess.run(
            [AWS, "mturk", *arguments, "--endpoint-url", service.api, "--output", "json"],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert bool(done.returncode) == fails, done.stderr
        return done.stderr if fails else json.loads(done.stdout or "null")

    return call


def test_a_hit_by_the_aws_command_line(aws, service, examples):
    hit = aws(
        "create-hit", *HIT_TYPE, "--lifetime-in-seconds", "3600", "--max-assignments", "2",
        "--question", examples.QUESTION,
    )["HIT"]  # fmt: skip
    assert (hit["HITStatus"], hit["Reward"], hit["MaxAssignments"]) == ("Assignable", "0.25", 2)
    service.work.register("AONE")
    assignment_id = service.work.accept("AONE", hit["HITId"]).assignment_id
    service.work.submit(assignment_id, "AONE", [("answer", "ü 🙂")])
    (result,) = aws("list-assignments-for-hit", "--hit-id", hit["HITId"])["Assignments"]
    assert result["AssignmentId"] == assignment_id
    assert "ü 🙂" in result["Answer"]


@pytest.mark.nightly
def test_a_study_by_the_aws_command_line(aws, service, examples):
    kind = aws("create-hit-type", *HIT_TYPE)["HITTypeId"]
    hit = aws(
        "create-hit-with-hit-type", "--hit-type-id", kind, "--lifetime-in-seconds", "3600",
        "--max-assignments", "2", "--question", examples.QUESTION, "--unique-request-token", "once",
    )["HIT"]  # fmt: skip
    assert (hit["HITStatus"], hit["Reward"], hit["MaxAssignments"]) == ("Assignable", "0.25", 2)
    again = aws(
        "create-hit-with-hit-type", "--hit-type-id", kind, "--lifetime-in-seconds", "3600",
        "--question", examples.QUESTION, "--unique-request-token", "once", fails=True,
    )  # fmt: skip
    assert hit["HITId"] in again
    assert [hit["HITId"] for hit in aws("list-hits")["HITs"]] == [hit["HITId"]]

    service.work.register("AONE")
    assignment_id = service.work.accept("AONE", hit["HITId"]).assignment_id
    service.work.submit(assignment_id, "AONE", [("answer", "ü 🙂")])
    (result,) = aws("list-assignments-for-hit", "--hit-id", hit["HITId"])["Assignments"]
    assert result["AssignmentId"] == assignment_id
    assert "ü 🙂" in result["Answer"]

    assert aws("approve-assignment", "--assignment-id", assignment_id) is None
    aws(
        "send-bonus", "--worker-id", "AONE", "--bonus-amount", "1.00", "--assignment-id",
        assignment_id, "--reason", "Danke",
    )  # fmt: skip
    made_type = aws(
        "create-qualification-type", "--name", "Deutsch", "--description", "Liest Deutsch",
        "--qualification-type-status", "Active",
    )["QualificationType"]  # fmt: skip
    assert (made_type["Name"], made_type["IsRequestable"]) == ("Deutsch", True)
    # 10,000 - (0.25 + 0.05) - (1.00 + 0.20), and one place of 0.30 on hold
    assert aws("get-account-balance") == {"AvailableBalance": "9998.20", "OnHoldBalance": "0.30"}
