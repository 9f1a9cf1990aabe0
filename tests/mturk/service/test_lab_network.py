"""A study of volunteers in the network of a laboratory: two computers, no proxy, no TLS."""

import subprocess
import time

import pytest

from mturk.service.server import ServerOptions
from mturk.service.site.links import study_link
from mturk.service.site.studies import PanelStudy
from mturk.study.settings import Settings
from tests.free_ports import free_ports
from tests.mturk.service.running import running
from tests.mturk.service.site.test_browser import choose, our_question
from tests.mturk.service.site.test_drafts_browser import wait_for_draft

KEYS = {"lab": "a secret of more than sixteen characters"}


def own_address():
    """Return an address of this machine in a network, other than its loopback address."""
    try:
        told = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return next((word for word in told.split() if "." in word), None)


def test_publish_and_take_part_from_another_computer(tmp_path, chromium):
    """The address of this machine in its network stands for that of another computer."""
    host, (port, frame_port) = own_address(), free_ports(2)
    if host is None:
        pytest.skip("this machine is in no network")
    study = PanelStudy("listening", "", volunteers=True, country=False, return_url="")
    options = ServerOptions(
        host="0.0.0.0", port=port, frame_port=frame_port, keys=KEYS, studies=[study],
        site_url=f"http://{host}:{port}", frame_url=f"http://{host}:{frame_port}",
    )  # fmt: skip
    with running(tmp_path, options, time.time()) as service:
        client = service.client(aws_access_key_id="lab", aws_secret_access_key=KEYS["lab"])
        volunteers = Settings(volunteers=True, reward=Settings().reward * 0, countries=())
        client.create_hit(
            **volunteers.hit_type() | {"QualificationRequirements": []}, MaxAssignments=2,
            LifetimeInSeconds=3600, Question=our_question(),
        )  # fmt: skip
        context = chromium.new_context(locale="en-GB")
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.goto(study_link(service.site, service.database.secret(), "listening"))
        page.get_by_label("Name in the study").fill("anna")
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("checkbox").check()
        page.get_by_role("button", name="Start").click()
        choose(frame := page.frame_locator("#question"))
        frame.locator("textarea").fill("From the lab")
        wait_for_draft(page, "From the lab")
        context.set_offline(True)
        frame.locator("form button[type=submit]").click()
        page.get_by_text("No connection.").wait_for()
        context.set_offline(False)
        page.get_by_role("heading", name="Finished, thank you!").wait_for()
        context.close()
        assert [one.status for one in service.work.history("anna", "listening")] == ["Submitted"]
