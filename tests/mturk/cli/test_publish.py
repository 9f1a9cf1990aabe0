import json
import tomllib

import pytest
from click.testing import CliRunner

pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")

import mturk.study.client
from mturk.cli import main
from mturk.study.ledger import Ledger
from mturk.study.settings_file import read_settings


def run(*arguments, **settings):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], **settings)


@pytest.fixture
def publish(running, files, tmp_path):
    def call(*more, **settings):
        ledger = tmp_path / "ledger.db"
        arguments = [*files.arguments, "--endpoint", running.url, "--ledger", ledger, *more]
        return run("publish", *arguments, **settings)

    return call


@pytest.fixture
def config(tmp_path):
    def write(text):
        path = tmp_path / "hits.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_estimate_calls_nothing_and_takes_the_arguments_of_publish(files):
    done = run(
        "estimate", *files.arguments, "--ledger", "none.db", "--yes", "--endpoint", "production"
    )
    assert done.exit_code == 0
    assert "total         $3.60\n" in done.output
    assert "simulated" not in done.output
    assert run("estimate", *files.arguments).output.count("simulated") == 2


def test_estimate_as_json(files):
    # 2 HITs x 5 x 0.30; 20 % of it; 3600 / 60 x 0.30 x 0.86
    document = json.loads(run("estimate", *files.arguments, "--json").stdout)
    assert (document["hits"], document["assignments"]) == (2, 10)
    assert (document["rewards"], document["fees"], document["total"]) == ("3.00", "0.60", "3.60")
    assert (document["hourly"], document["hourly_usd"]) == ("15.48", "18.00")
    assert document["imaginary"] is True
    assert document["below_minimum_wage"] is False


def test_a_wage_below_the_minimum_is_warned_of(files, config):
    path = config('reward = "0.10"')
    done = run("estimate", *files.arguments, "--config", path)
    assert done.exit_code == 0
    assert f"warning: {path}: workers of the expected speed earn 5.16 EUR per hour" in done.stderr
    assert "the minimum reward is 0.27" in done.stderr


def test_the_default_config_is_a_settings_file(config):
    done = run("estimate", "--default-config")
    assert done.exit_code == 0
    assert "reward" in tomllib.loads(done.output)
    assert read_settings(config(done.output), "de") == read_settings(config(""), "de")


def test_all_faults_of_the_input_are_named(files):
    files.tuples.write_text("tuple_id,group,item1,item2,item3\nt1,d3,d3-1,d3-2,x\nt2,d9,a,b,c\n")
    done = run("estimate", *files.arguments)
    assert done.exit_code == 2
    assert "item 'x' is not a candidate" in done.stderr
    assert "'d9'" in done.stderr


def test_preview_writes_the_page(files, tmp_path):
    page = tmp_path / "page.html"
    done = run("preview", *files.arguments, "--hit", 2, "--no-browser", "-o", page)
    assert done.exit_code == 0
    assert f"{page}: HIT 2 of 2, " in done.output
    assert "<fieldset" in page.read_text(encoding="utf-8")
    assert "<!DOCTYPE html>" in run("preview", *files.arguments, "-o", "-").stdout
    beyond = run("preview", *files.arguments, "--hit", 3, "-o", page)
    assert beyond.exit_code == 2
    assert "3 is out of range; expected 1 to 2" in beyond.stderr


def test_preview_opens_the_page(files, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("click.launch", opened.append)
    run("preview", *files.arguments, "-o", tmp_path / "page.html")
    assert opened == [str(tmp_path / "page.html")]


def test_publish_and_again(publish, running):
    first = publish("--json")
    assert first.exit_code == 0, first.output
    document = json.loads(first.stdout)
    assert (document["created"], document["adopted"], document["left"]) == (2, 0, 0)
    assert (document["total"], document["imaginary"]) == ("3.60", True)
    again = publish()
    assert again.exit_code == 0
    assert f"2 HITs at {running.url}: 2 published before; ledger" in again.output
    assert len(running.annotations()) == 2


def test_nobody_listening_leaves_no_ledger(files, tmp_path):
    done = run(
        "publish",
        *files.arguments,
        "--endpoint",
        "http://127.0.0.1:1",
        "--ledger",
        tmp_path / "l.db",
    )
    assert done.exit_code == 1
    assert "start the service with `giccs annotate serve`" in done.stderr
    assert not (tmp_path / "l.db").exists()


def test_production_is_refused(files):
    done = run("publish", *files.arguments, "--endpoint", "production")
    assert done.exit_code == 2
    assert "closed on 2026-09-30" in done.stderr


def test_the_spending_limit_stops_before_the_first_call(publish, running, config):
    done = publish("--config", config('spending_limit = "3.59"'))
    assert done.exit_code == 2
    assert "the study costs $3.60 including fees; spending_limit is $3.59" in done.stderr
    assert running.faults.calls == []
    assert publish("--config", config('spending_limit = "3.60"')).exit_code == 0


def test_a_balance_too_small_stops_before_the_first_hit(publish, running, config):
    done = publish("--config", config("assignments = 1000000"))  # 2 x 1000000 x (0.30 + 0.12)
    assert done.exit_code == 1
    assert "the HITs cost $840000.00 including fees, but the balance is $100000.00" in done.stderr
    assert running.faults.calls == ["ListHITs", "GetAccountBalance"]


def test_another_study_in_the_same_ledger_is_refused(publish, running, config):
    publish()
    done = publish("--config", config('reward = "0.50"'))
    assert done.exit_code == 2
    assert "was created with reward 0.30, not 0.50" in done.stderr
    assert len(running.annotations()) == 2


def test_an_interruption_says_what_is_left_and_the_same_command_goes_on(publish, running):
    made = []
    running.faults.choose = lambda operation, number: (
        made.append(number) if operation == "CreateHITWithHITType" else None
    )
    original = Ledger.mark_created

    def interrupted(book, *given):
        original(book, *given)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "mark_created", interrupted)
        done = publish()
    assert done.exit_code == 130
    assert "1 of 2 HITs are not published yet" in done.stderr
    assert "published HITs are recorded in" in done.stderr
    assert publish().exit_code == 0
    assert len(made) == len(running.annotations()) == 2


def test_doubles_are_told(publish, running, files):
    from mturk.study.settings import Settings

    client = mturk.study.client.connect(mturk.study.client.resolve(running.url))
    hit_type_id = client.create_hit_type(**Settings().hit_type())["HITTypeId"]
    plan = files.plans(Settings())[0]
    for _ in range(2):
        client.create_hit_with_hit_type(
            HITTypeId=hit_type_id, Question=plan.question, MaxAssignments=5, LifetimeInSeconds=600,
            RequesterAnnotation=plan.annotation,
        )  # fmt: skip
    done = publish()
    assert done.exit_code == 0
    assert f"duplicate HIT for {plan.annotation}; expire it" in done.stderr
    assert "1 adopted, 1 created" in done.stdout


@pytest.fixture
def beyond_this_machine(monkeypatch):
    """The service listens on this machine, where all tests are; only the question whether is answered no."""
    monkeypatch.setattr(mturk.study.client, "_is_loopback", lambda host: False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")


@pytest.mark.usefixtures("beyond_this_machine")
def test_beyond_this_machine_the_amount_is_typed(publish, running):
    for wrong in ("\n", "yes\n", "3.61\n"):
        done = publish(input=wrong)
        assert done.exit_code == 2
        assert "2 HITs at" in done.stderr
        assert "nothing was published" in done.stderr
    assert publish(input="").exit_code == 1
    assert running.annotations() == []
    assert publish(input="$3.60\n").exit_code == 0
    assert len(running.annotations()) == 2
    assert publish(input="").exit_code == 0  # nothing is left to pay


@pytest.mark.usefixtures("beyond_this_machine")
def test_a_script_says_yes(publish, running):
    assert publish("--yes", input="").exit_code == 0
    assert len(running.annotations()) == 2


@pytest.mark.usefixtures("beyond_this_machine")
def test_a_pay_in_cents_is_confirmed_even_with_yes(publish, running, config):
    more = ("--config", config('reward = "30"\napproval_rate_above = -1'), "--yes")
    doubtful = publish(*more, input="\n")
    assert doubtful.exit_code == 2
    assert "hits.toml: the pay is 1800.00 per hour; expected 5 to 100" in doubtful.stderr
    assert running.annotations() == []
    assert publish(*more, input="360.00\n").exit_code == 0
    assert len(running.annotations()) == 2
