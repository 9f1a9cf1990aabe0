import pytest

pytest.importorskip("starlette", reason="the extra giccs[study] is not installed")

from bws.base.problems import InputError
from mturk.service.site.studies import read_studies

GOOD = """\
[pilot]
completion_code = "C1X"
hits = 20
[pilot.information]
de = "Wir fragen Sie nach Äußerungen."

[main]
completion_code = "C2"
return_url = ""
"""


def test_every_table_is_a_study(tmp_path):
    path = tmp_path / "studies.toml"
    path.write_text(GOOD, encoding="utf-8")
    pilot, main = read_studies(str(path))
    assert (pilot.name, pilot.completion_code, pilot.hits) == ("pilot", "C1X", 20)
    assert pilot.paragraphs("en") == ["Wir fragen Sie nach Äußerungen."]
    assert (main.return_url, main.hits) == ("", None)


def test_all_faults_are_named_together(tmp_path):
    path = tmp_path / "studies.toml"
    path.write_text(
        'loose = 1\n[a]\nhits = 3\n[b]\ncompletion_code = "x"\nhits = true\n[c]\ncode = "x"\n'
        '[d]\ncompletion_code = "x"\nhits = 0\nminutes = "ten"\ncolour = "red"\n'
        'return_url = "javascript:x"\nname = "e"\n',
        encoding="utf-8",
    )
    with pytest.raises(InputError) as caught:
        read_studies(str(path))
    found = [(problem.line, problem.message.split("; ")[0]) for problem in caught.value.problems]
    assert found == [
        (1, "loose is 1"), (2, "a.completion_code is missing"), (6, "b.hits is True"),
        (8, "unknown key c.code"), (11, "d.hits is 0"), (12, "d.minutes is 'ten'"),
        (13, "unknown key d.colour"), (14, "d.return_url is 'javascript:x'"), (15, "unknown key d.name"),
    ]  # fmt: skip


def test_what_is_not_toml_is_refused(tmp_path):
    path = tmp_path / "studies.toml"
    path.write_text("[a", encoding="utf-8")
    with pytest.raises(InputError, match="not valid TOML"):
        read_studies(str(path))
