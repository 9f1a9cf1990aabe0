"""Files for those who cite, report, contribute and release parse, agree with each other, and are complete."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
ZENODO = json.loads((ROOT / ".zenodo.json").read_text("utf-8"))
PAPER = (ROOT / "paper.md").read_text("utf-8")
RECIPES = ("giccs-paper", "c-sts-paper", "l-csts-paper", "evalrank-paper")
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

SCHEMAS = {
    "citation-file-format": [ROOT / "CITATION.cff"],
    "github-issue-config": [path for path in FORMS if path.name == "config.yml"],
    "github-issue-forms": [path for path in FORMS if path.name != "config.yml"],
    "github-workflows": WORKFLOWS,
}
"""Schema in check-jsonschema -> files."""


@pytest.mark.skipif(
    not importlib.util.find_spec("check_jsonschema"), reason="check-jsonschema is not installed"
)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_published_schemas_accept_the_files(schema, tmp_path):
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("no-such-key: 1\n")
    from check_jsonschema import main

    for paths, is_valid in ((SCHEMAS[schema], True), ([wrong], False)):
        result = CliRunner().invoke(
            main, ["--builtin-schema", f"vendor.{schema}", *map(str, paths)]
        )
        assert result.exit_code == (0 if is_valid else 1), result.output


def test_citation_archive_and_package_agree():
    assert (str(CITATION["version"]), CITATION["license"]) == (
        PROJECT["version"],
        PROJECT["license"],
    )
    assert ZENODO["license"] == PROJECT["license"]
    assert ZENODO["title"] == CITATION["title"]
    names = [author["name"] for author in PROJECT["authors"]]
    assert [author["name"] for author in CITATION["authors"]] == names
    assert [creator["name"] for creator in ZENODO["creators"]] == names
    assert ZENODO["keywords"] == CITATION["keywords"]


def test_the_four_papers_are_those_of_the_recipes():
    sources = [
        tomllib.loads((ROOT / "giccs" / "recipes" / f"{name}.toml").read_text("utf-8"))["source"]
        for name in RECIPES
    ]
    assert [reference["url"] for reference in CITATION["references"]] == sources
    assert [related["identifier"] for related in ZENODO["related_identifiers"]] == sources
    bibliography = (ROOT / "paper.bib").read_text("utf-8")
    assert all(source in bibliography for source in sources)


# GitHub's syntax for issue forms: name, description and body, with inputs of these types
INPUTS = {"markdown", "textarea", "input", "dropdown", "checkboxes"}


@pytest.mark.parametrize(
    "path", [path for path in FORMS if path.name != "config.yml"], ids=lambda p: p.name
)
def test_issue_forms(path):
    form = yaml.safe_load(path.read_text("utf-8"))
    assert (
        {"name", "description", "body"} <= form.keys() <= {"name", "description", "body", "labels"}
    )
    ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert len(set(ids)) == len(ids) > 1
    for part in form["body"]:
        assert part["type"] in INPUTS
        assert part["attributes"].get("label") or part["type"] == "markdown"
        assert all(isinstance(option, str) for option in part["attributes"].get("options", []))


def test_there_is_a_form_per_kind_of_issue():
    assert [path.stem for path in FORMS] == ["bug", "config", "feature", "wrong-number"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_few_rights_and_run_what_exists(path):
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    for name, job in workflow["jobs"].items():
        assert job.get("permissions", {}) == ({"id-token": "write"} if name == "publish" else {})
        for step in job["steps"]:
            assert step.keys() & {"uses", "run"}
            assert set(re.findall(r"make ([a-z-]+)", step.get("run", ""))) <= targets
            for script in re.findall(r"python (\.ci/\S+)", step.get("run", "")):
                assert (ROOT / script).is_file()


def test_only_a_checked_package_is_published_without_a_stored_secret():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert jobs["publish"]["needs"] == "build"
    assert jobs["publish"]["environment"] == "pypi"
    runs = [step.get("run", "") for step in jobs["build"]["steps"]]
    assert any("twine check --strict" in run for run in runs)
    assert "secrets." not in text


@pytest.fixture
def release_problems():
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda tag, root: list(module.problems(tag, root))


def test_a_release_needs_one_version_and_a_dated_changelog(release_problems, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("version: 1.2.0\ndate-released: 2027-01-02\n")
    (tmp_path / "README.md").write_text("  version = {1.2.0}\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 1.2.0 (2027-01-02)\n")
    assert release_problems("v1.2.0", tmp_path) == []
    assert release_problems("v1.3.0", tmp_path) == [
        "the tag is v1.3.0; expected v1.2.0, the version in pyproject.toml"
    ]
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 1.2.0 (unreleased)\n")
    (tmp_path / "README.md").write_text("  version = {1.1.0}\n")
    assert [text.split()[0] for text in release_problems("v1.2.0", tmp_path)] == [
        "README.md",
        "CHANGELOG.md",
    ]


def test_the_versions_in_citation_and_readme_are_that_of_the_package(release_problems):
    fit = {
        "CITATION.cff has no line ^date-released",
        "CHANGELOG.md has no line",
    }  # until the release
    found = release_problems(f"v{PROJECT['version']}", ROOT)
    assert [text for text in found if not any(map(text.startswith, fit))] == []


def test_the_changelog_is_by_version():
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert headings[0].split()[0] == PROJECT["version"]
    assert all(
        re.fullmatch(r"\d+\.\d+\.\d+ \((unreleased|\d{4}-\d\d-\d\d)\)", text) for text in headings
    )


def test_no_person_or_address_is_made_up():
    for name in ("CODE_OF_CONDUCT.md", "SECURITY.md", "paper.md", ".zenodo.json"):
        assert not re.search(r"[\w.]+@[\w-]+\.\w", (ROOT / name).read_text("utf-8")), name


# The paper: https://joss.readthedocs.io/en/latest/paper.html


def test_the_paper_has_at_most_a_thousand_words_and_all_parts():
    _, head, body = PAPER.split("---\n", 2)
    assert len(re.findall(r"\b[\w'’-]*[^\W\d_][\w'’-]*", body.partition("# References")[0])) <= 1000
    metadata = yaml.safe_load(head)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= metadata.keys()
    assert [author["name"] for author in metadata["authors"]] == [
        a["name"] for a in PROJECT["authors"]
    ]
    headings = re.findall(r"^# (.+)$", body, re.M)
    assert headings[:2] == ["Summary", "Statement of need"]
    assert headings[-1] == "References"


def test_every_citation_of_the_paper_has_an_entry_and_every_entry_is_cited():
    cited = set(re.findall(r"@([a-z]+\d{4}[a-z]+|labelstudio)", PAPER))
    entries = set(re.findall(r"^@\w+\{([^,]+),", (ROOT / "paper.bib").read_text("utf-8"), re.M))
    assert cited == entries


def test_make_targets_and_tools_in_the_paper_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"`make ([a-z-]+)`", PAPER):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_migration_page_lists_every_former_option():
    page = (ROOT / "docs" / "migration.md").read_text("utf-8")
    spec = importlib.util.spec_from_file_location(
        "former", ROOT / "tests" / "test_renamed_options.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for names in module.FORMER_NAMES.values():
        for former, current in names.items():
            line = next(line for line in page.splitlines() if f"`{former}`" in line)
            assert f"`{current}`" in line
