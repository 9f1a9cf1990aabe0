"""Settings: default file, invalid values with their lines, and arguments for the service."""

import tomllib
from dataclasses import fields
from decimal import Decimal

import pytest

from bws.base.problems import InputError
from mturk.limits import qualification_problems
from mturk.study.settings import Settings
from mturk.study.settings_file import FOLLOW_LANGUAGE, default_toml, read_settings


def written(tmp_path, text):
    path = tmp_path / "hits.toml"
    path.write_text(text, encoding="utf-8")
    return path


def problems_of(path):
    with pytest.raises(InputError) as caught:
        read_settings(path, "de")
    return [(problem.line, problem.message) for problem in caught.value.problems]


def test_default_file_contains_defaults(tmp_path):
    text = default_toml()
    assert read_settings(written(tmp_path, text), "de") == Settings()
    names = [field.name for field in fields(Settings)]
    assert list(tomllib.loads(text)) == [name for name in names if name not in FOLLOW_LANGUAGE]
    every = "\n".join(
        line.removeprefix("# ") if " = " in line else line for line in text.splitlines()
    )
    assert list(tomllib.loads(every)) == names
    assert max(map(len, (line for line in text.splitlines() if line.startswith("#")))) <= 100


def test_empty_file_has_defaults(tmp_path):
    assert read_settings(written(tmp_path, ""), "de") == Settings()


def test_defaults_pay_minimum_wage():
    settings = Settings()
    assert settings.hourly_wage() >= settings.minimum_wage


def test_volunteers_need_no_reward_country_or_approval_rate(tmp_path):
    settings = read_settings(written(tmp_path, "volunteers = true"), "de")
    assert settings.reward == 0
    assert settings.qualifications() == []
    assert read_settings(written(tmp_path, ""), "de").qualifications()
    own = read_settings(written(tmp_path, 'volunteers = true\ncountries = ["AT"]'), "de")
    assert own.countries == ("AT",)


def test_values_are_read(tmp_path):
    text = 'reward = "1"\ncountries = ["DE", "AT"]\nlanguage = "en"\nconsent = """\nZeile 1\nZeile 2\n"""'
    settings = read_settings(written(tmp_path, text), "de")
    assert str(settings.reward) == "1.00"
    assert settings.countries == ("DE", "AT")
    assert settings.consent == "Zeile 1\nZeile 2"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rewad = 1", "unknown option rewad; expected one of kind, title, description"),
        (
            "reward = 0.25",
            'reward is 0.25; expected dollars of at least 0.01 as a text, such as "0.25"',
        ),
        ('reward = "0,25"', "reward is '0,25'"),
        ('reward = "0.25"\nvolunteers = true', "reward is '0.25' with volunteers = true"),
        ('reward = "0.00"', "reward is '0.00'; expected dollars of at least 0.01"),
        ('title = ""', "title: Title has 0 characters; expected 1 to 128"),
        (f'title = "{"x" * 129}"', "title: Title has 129 characters"),
        ("title = 7", "title is 7; expected a text"),
        ("assignments = 0", "assignments is 0; expected an integer from 1 to 1000000000"),
        ("assignments = true", "assignments is True; expected an integer"),
        ("assignments = 5.0", "assignments is 5.0; expected an integer"),
        ("lifetime = 29", "lifetime is 29; expected an integer from 30 to 31536000"),
        ("auto_approval_delay = 2592001", "auto_approval_delay is 2592001"),
        ("pseudonyms = 1", "pseudonyms is 1; expected true or false"),
        (
            'language = "cy"',
            "no built-in page texts in cy (available: ",
        ),
        ('language = "French"', "language: 'French' is not a BCP 47 language tag"),
        (
            'dialogue_language = "de\\" x"',
            "dialogue_language: 'de\" x' is not a BCP 47 language tag",
        ),
        (
            'dialogue_language = "en"',
            "dialogue_language is 'en', but the study is in de; expected the same",
        ),
        ('exchange_rate = "NaN"', "exchange_rate is 'NaN'; expected a number above 0"),
        ('exchange_rate = "0"', "exchange_rate is '0'"),
        ('countries = "DE"', "countries is 'DE'; expected a list of codes such as"),
        ('countries = ["de"]', "countries is ['de']"),
        ('countries = ["DE", "DE"]', "countries is ['DE', 'DE']"),
        (
            "approval_rate_above = 101",
            "approval_rate_above is 101; expected an integer from -1 to 100",
        ),
        ("[qualifications]", "unknown option qualifications"),
    ],
)
def test_invalid_value_is_reported_with_line(tmp_path, line, said):
    [(number, message)] = problems_of(written(tmp_path, f'# first\nkeywords = "a"\n{line}\n'))
    assert number == 3
    assert message.startswith(said)


def test_all_problems_are_reported_in_order(tmp_path):
    result = problems_of(written(tmp_path, 'seed = -1\n\nreward = 1\n"odd key" = 2\n'))
    assert [line for line, _ in result] == [1, 3, 4]


def test_invalid_toml_is_reported_with_line(tmp_path):
    [(number, message)] = problems_of(written(tmp_path, "seed = 1\nseed = = 2\n"))
    assert (number, message) == (2, "not valid TOML: Invalid value")


def test_too_many_countries(tmp_path):
    codes = [f"{chr(65 + n // 26)}{chr(65 + n % 26)}" for n in range(31)]
    [(number, message)] = problems_of(written(tmp_path, f"countries = {codes}"))
    assert (number, "LocaleValues is 31; expected 1 to 30" in message) == (1, True)


def test_default_qualifications_match_paper():
    rate, approved, place = Settings().qualifications()
    assert (approved["Comparator"], approved["IntegerValues"]) == ("GreaterThanOrEqualTo", [0])
    assert rate == {
        "QualificationTypeId": "000000000000000000L0",
        "Comparator": "GreaterThan",
        "IntegerValues": [98],
    }
    assert place == {
        "QualificationTypeId": "00000000000000000071",
        "Comparator": "EqualTo",
        "LocaleValues": [{"Country": "DE"}],
    }


def test_all_and_no_qualifications():
    every = Settings(hits_approved_at_least=100, countries=("DE", "AT"), own_qualifications=("3X",))
    assert [
        (qualification["QualificationTypeId"][-2:], qualification["Comparator"])
        for qualification in every.qualifications()
    ] == [
        ("L0", "GreaterThan"),
        ("40", "GreaterThanOrEqualTo"),
        ("71", "In"),
        ("3X", "Exists"),
    ]
    assert qualification_problems(every.qualifications()) == []
    assert Settings(approval_rate_above=-1, countries=()).qualifications() == []


def test_hit_type_arguments():
    hit_type = Settings(reward=Decimal("0.50")).hit_type()
    assert hit_type["Reward"] == "0.50"
    model = (
        pytest.importorskip("botocore.loaders").Loader().load_service_model("mturk", "service-2")
    )
    members = model["shapes"]["CreateHITTypeRequest"]["members"]
    assert hit_type.keys() == members.keys()
