"""Studies of volunteers: ids of their choice, and no money, countries or vocabulary of HITs."""

import re

import pytest

from bws.base.problems import InputError
from mturk.service.site.links import study_link, worker_link
from mturk.service.site.studies import PanelStudy, read_studies
from tests.mturk.service.site.test_participants import (
    ANNA,
    SITE,
    command,
    visit,  # noqa: F401 - a fixture
)

OPEN = PanelStudy("open", "", volunteers=True, country=False, return_url="")
OTHER = PanelStudy("other", "", volunteers=True, country=False, return_url="")
MONEY = re.compile(
    r"\$|€|\bpaid|\bpay|reward|earned|approved|rejected|prolific|platform|\bHIT", re.I
)


def path(service, study="open"):
    return study_link(SITE, service.database.secret(), study)


def join(browser, service, name, study="open"):
    address = path(service, study)
    return browser.submit(address, text=address, worker=name)


def begin(browser, service, name, study="open"):
    join(browser, service, name, study)
    return browser.submit("/work/start", text="/work/start", consent="yes")


def words(page):
    return re.sub(r"<[^>]*>", " ", page.text.partition("<body")[2])


def test_from_a_name_to_the_end_without_money_countries_or_hits(service, visit):  # noqa: F811
    for _ in range(2):
        service.publish(reward=0)
    browser = visit(OPEN)
    pages = [browser.get(path(service)), join(browser, service, "anna")]
    assert "You take part as anna." in pages[-1].text
    assert 'name="country"' not in pages[-1].text
    page = browser.submit("/work/start", text="/work/start", consent="yes")
    assert "Task 1 of 2" in page.text
    pages += [page, browser.get("/work/withdraw"), browser.get("/work/messages")]
    page = browser.finish(page)
    assert "Task 2 of 2" in page.text
    pages += [browser.finish(page), browser.get("/work/history")]
    assert "your answers are stored" in pages[-2].text
    assert service.work.history("anna", "open")[0].status == "Submitted"
    for page in pages:
        assert page.status_code == 200
        assert not MONEY.search(words(page)), MONEY.search(words(page))


def test_a_name_is_bound_to_its_browser_until_released(service, visit):  # noqa: F811
    service.publish(places=9)
    anna, stranger = visit(OPEN), visit(OPEN)
    begin(anna, service, "anna")
    for name in ("anna", "ANNA"):
        page = join(stranger, service, name)
        assert page.status_code == 422
        assert "already taken" in page.text
    assert (
        "Continue" not in stranger.get("/work/start").text
        or "anna" not in stranger.get("/work/start").text
    )
    anna.submit("/work/leave", text="/work/history")
    assert begin(anna, service, "anna").url.path.startswith("/work/assignment/")
    command(service, "release", "anna", "--study", "open")
    assert begin(stranger, service, "anna").url.path.startswith("/work/assignment/")


@pytest.mark.parametrize(
    "name", ["", "1a", "a b", "APROLIFIC" + ANNA.upper(), "aprolific1", "x" * 65, "<b>"]
)
def test_names_that_are_none(service, visit, name):  # noqa: F811
    page = join(visit(OPEN), service, name)
    assert page.status_code == 422
    assert "not valid" in page.text


def test_nobody_becomes_an_invited_worker_or_a_volunteer_of_another_study(service, visit):  # noqa: F811
    invited, anna, stranger = visit(OPEN, OTHER), visit(OPEN, OTHER), visit(OPEN, OTHER)
    invited.get(worker_link(SITE, service.database.secret(), "ben"))
    invited.submit("/work/start", text="/work/start", country="DE")
    begin(anna, service, "anna")
    assert join(stranger, service, "ben").status_code == 422
    assert join(stranger, service, "anna", "other").status_code == 422
    assert "You are signed in as anna." in join(anna, service, "anna", "other").text


def test_a_form_of_another_page_joins_nobody(service, visit):  # noqa: F811
    page = visit(OPEN).post(path(service), data={"worker": "anna", "csrf": "0"})
    assert page.status_code == 403


def test_a_study_of_a_panel_asks_for_no_name(service, visit):  # noqa: F811
    assert visit(PanelStudy("open", "C1")).get(path(service)).status_code == 403


def test_the_preset_of_the_settings_file(tmp_path):
    file = tmp_path / "studies.toml"
    file.write_text(
        "[open]\nvolunteers = true\n[asked]\nvolunteers = true\ncountry = true\n[paid]\n"
    )
    with pytest.raises(InputError, match=r"paid\.completion_code is missing"):
        read_studies(str(file))
    file.write_text(file.read_text().replace("[paid]\n", ""))
    one, other = read_studies(str(file))
    assert (one.country, one.completion_url(), other.country) == (False, "", True)
    with pytest.raises(ValueError, match="volunteers have no signatures"):
        PanelStudy("open", "", volunteers=True, prolific_keys="keys.json")
