"""Images, compose file and nginx of containers/ agree with each other, with the code and with the page.

Also hadolint and the published schema of compose files check them, and `docker compose config` if it is
installed. CI builds the images, starts them and submits a HIT.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "containers"
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))
SERVICES = COMPOSE["services"]
NGINX = (FOLDER / "nginx.conf").read_text("utf-8")
PAGE = (ROOT / "docs" / "operations" / "service.md").read_text("utf-8")
SECTION = re.search(r"^## In containers\n(.*?)^## ", PAGE, re.M | re.S)[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DOCKERFILES = sorted(FOLDER.glob("*/Dockerfile"))
FOREIGN_VARIABLES = {
    "HOME", "USER", "HF_HOME", "PGPASSFILE",
    # of the images of PostgreSQL and nginx
    "POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD_FILE", "NGINX_ENVSUBST_OUTPUT_DIR",
}  # fmt: skip
SECRET = re.compile(r"(?i)(password|secret|token|key)\w*\s*[:=]\s*[^\s{\[/]")

HADOLINT = shutil.which(
    "hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
)

every_dockerfile = pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
every_service = pytest.mark.parametrize("name", SERVICES)


def instructions(path):
    """The (instruction, arguments) pairs of a Dockerfile, without comments and continued lines."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text("utf-8"), flags=re.M)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [
        (name.upper(), rest) for name, _, rest in (line.partition(" ") for line in lines) if name
    ]


def of(path, wanted):
    return [rest for name, rest in instructions(path) if name == wanted]


def is_sent(source):
    """Whether .dockerignore, which names what is sent, lets a file or folder of the root pass."""
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert "*" in lines
    return f"!{source}" in lines


def interpolated(value):
    """The names of ${NAME:?message} in a value of the compose file."""
    return set(re.findall(r"\$\{(\w+)", json.dumps(value)))


def option_values(command):
    return dict(part.removeprefix("--").split("=", 1) for part in command if part.startswith("--"))


def test_there_are_two_images():
    assert [path.parent.name for path in DOCKERFILES] == ["evaluation", "service"]


def is_pinned(image):
    return re.fullmatch(r"[\w./-]+:\d+\.?\d*-[\w-]+", image)


@every_dockerfile
def test_base_images_are_pinned_and_nothing_runs_as_root(path):
    stages = [line.split(" AS ") for line in of(path, "FROM")]
    assert all(is_pinned(base) for base, *_ in stages)
    final = [name for name, _ in instructions(path)][::-1]
    assert final.index("USER") < final.index("FROM")
    assert not re.match(r"(root|0)\b", of(path, "USER")[-1])


@every_dockerfile
def test_sources_exist_and_are_sent_to_docker(path):
    sources = [part for line in of(path, "COPY") for part in line.split()[:-1]]
    sources += re.findall(r"--mount=type=bind,source=([^,]+)", path.read_text("utf-8"))
    assert "constraints.txt" in sources
    for source in sources:
        assert (ROOT / source).exists()
        assert is_sent(source), source


def test_all_packages_and_no_private_files_are_sent():
    packages = {name.split(".")[0] for name in PROJECT["scripts"].values()} - {"giccs_app"}
    assert all(is_sent(name) for name in packages | {"app"})
    assert not any(map(is_sent, ("containers", ".git", ".env", "tests")))
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert {"/containers/.env", "/containers/private/"} <= set(ignored)


@every_dockerfile
def test_packages_are_installed_with_constraints_and_without_a_cache(path):
    for line in of(path, "RUN"):
        assert line.count("pip ") == line.count("--no-cache-dir")
        assert line.count("pip install") == line.count("--constraint /constraints.txt")
    extras = re.search(r"\*\.whl\)\[([\w,]+)\]", path.read_text("utf-8"))[1].split(",")
    assert set(extras) <= PROJECT["optional-dependencies"].keys()


def test_torch_is_installed_first_and_for_the_cpu_unless_an_index_is_given():
    path = FOLDER / "evaluation" / "Dockerfile"
    assert of(path, "ARG") == ["TORCH_INDEX=https://download.pytorch.org/whl/cpu"]
    runs = of(path, "RUN")
    assert ["torch" in run for run in runs] == [False, True, False]
    assert all(word in runs[1] for word in ('--index-url "$TORCH_INDEX"', "--no-deps"))


@every_dockerfile
def test_the_entry_point_is_a_command_of_the_package(path):
    (entry,) = of(path, "ENTRYPOINT")
    assert json.loads(entry)[0] in PROJECT["scripts"]


def test_the_variables_of_the_images_exist():
    code = "".join(
        path.read_text("utf-8")
        for name in ("app", "bws", "giccs", "mturk")
        for path in (ROOT / name).rglob("*.py")
    )
    names = {
        name
        for path in DOCKERFILES
        for line in of(path, "ENV")
        for name in re.findall(r"(\w+)=", line)
    }
    names |= {name for service in SERVICES.values() for name in service.get("environment", {})}
    names -= FOREIGN_VARIABLES | set(re.findall(r"\$\{(\w+)\}", NGINX))
    assert names == {"GICCS_CACHE"}
    assert all(f'"{name}"' in code for name in names)


def test_no_secret_is_in_the_files():
    for path in (*DOCKERFILES, FOLDER / "compose.yaml", FOLDER / "nginx.conf"):
        found = [line for line in path.read_text("utf-8").splitlines() if SECRET.search(line)]
        assert found == [], path
    files = {name: secret["file"] for name, secret in COMPOSE["secrets"].items()}
    assert files == {name: f"private/{name}" for name in files}
    assert {
        name for service in SERVICES.values() for name in service.get("secrets", [])
    } == files.keys()


@every_service
def test_services_are_restricted(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["security_opt"] == ["no-new-privileges:true"]
    if name == "database":  # its image starts as root, and continues as postgres
        assert is_pinned(service["image"])
        return
    assert service["cap_drop"] == ["ALL"]
    assert interpolated(service["user"]) == {"OWNER"}
    assert "build" in service or is_pinned(service["image"])


def test_only_nginx_is_published_and_the_database_has_no_network_but_its_own():
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["nginx"]
    assert SERVICES["database"]["networks"] == ["data"]
    assert COMPOSE["networks"]["data"] == {"internal": True}
    assert "data" not in SERVICES["nginx"]["networks"]


def test_each_service_starts_after_a_healthy_one_and_docker_waits_for_all():
    assert "healthcheck" in SERVICES["nginx"]
    assert SERVICES["service"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert SERVICES["nginx"]["depends_on"] == {"service": {"condition": "service_healthy"}}
    assert SERVICES["database"]["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]


def test_the_database_is_a_named_volume():
    (volume,) = SERVICES["database"]["volumes"]
    assert volume.split(":")[0] in COMPOSE["volumes"]
    suite = SERVICES["database"]["image"].split(":")[1]
    assert int(suite.split("-")[0]) < 18, "PostgreSQL 18 has its data in another folder"
    assert volume.split(":")[1] == "/var/lib/postgresql/data"


def test_the_command_of_the_service_is_understood():
    from mturk.cli.service import serve

    name, *options = SERVICES["service"]["command"]
    assert name == "serve"
    context = serve.make_context(
        "serve", [re.sub(r"\$\{\w+[^}]*\}", "host", one) for one in options]
    )
    assert context.params["log"] == "json"
    secrets = [f"/run/secrets/{name}" for name in SERVICES["service"]["secrets"]]
    assert context.params["keys"] in secrets
    assert SERVICES["service"]["environment"]["PGPASSFILE"] in secrets
    assert context.params["studies"] == SERVICES["service"]["volumes"][0]["target"]
    assert context.params["db"] == "postgresql+psycopg://giccs@database/giccs"
    database = SERVICES["database"]["environment"]
    assert database["POSTGRES_USER"] == database["POSTGRES_DB"] == "giccs"


def test_ports_and_addresses_agree():
    from mturk.cli.service import serve

    site = next(parameter.default for parameter in serve.params if parameter.name == "port")
    assert re.findall(r"proxy_pass http://service:(\d+);", NGINX) == [str(site), str(site + 1)]
    assert of(FOLDER / "service" / "Dockerfile", "EXPOSE") == [f"{site} {site + 1}"]
    (health,) = of(FOLDER / "service" / "Dockerfile", "HEALTHCHECK")
    assert f"http://127.0.0.1:{site}/healthz" in health

    published = [port.split(":")[1] for port in SERVICES["nginx"]["ports"]]
    assert published == list(dict.fromkeys(re.findall(r"listen (\d+)", NGINX)))
    trusted = option_values(SERVICES["service"]["command"])["trust-proxy"]
    assert trusted == SERVICES["nginx"]["networks"]["web"]["ipv4_address"]


def test_nginx_has_the_settings_of_the_page():
    servers = re.search(r"<!-- nginx: checked.*?```nginx\n(.*?)```", PAGE, re.S)[1]
    for name in (
        "proxy_set_header",
        "client_max_body_size",
        "ssl_certificate",
        "ssl_certificate_key",
    ):
        wanted = {
            " ".join(line.split()) for line in re.findall(rf"^\s*({name}\s.*;)", servers, re.M)
        }
        assert wanted == {
            " ".join(line.split()) for line in re.findall(rf"^\s*({name}\s.*;)", NGINX, re.M)
        }
    mounted = {
        volume["target"]: volume["source"]
        for volume in SERVICES["nginx"]["volumes"]
        if isinstance(volume, dict)
    }
    assert mounted == {"/etc/ssl/giccs": "private/tls"}


def settings_commands():
    """The commands of the page that write the files of the administrator."""
    block = re.search(
        r"<!-- not run: tests/test_containers.py .*?```console\n(.*?)```", SECTION, re.S
    )
    lines = block[1].splitlines()
    assert all(line.startswith("$ ") for line in lines)
    return [line.removeprefix("$ ") for line in lines]


def test_the_files_that_the_page_writes_are_those_that_are_mounted(tmp_path):
    """The commands are run in a copy, with certificates of the test."""
    script = "\n".join(settings_commands()).replace("/etc/letsencrypt/live/work.example.org", "..")
    for name in ("fullchain.pem", "privkey.pem"):
        (tmp_path / name).write_text(name)
    (tmp_path / "containers").mkdir()
    subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, check=True)

    folder = tmp_path / "containers"
    settings = dict(line.split("=", 1) for line in (folder / ".env").read_text().splitlines())
    assert settings.keys() == interpolated(SERVICES)
    written = {
        str(path.relative_to(folder)) for path in (folder / "private").rglob("*") if path.is_file()
    }
    mounted = {secret["file"] for secret in COMPOSE["secrets"].values()}
    assert written == mounted | {
        "private/studies.toml", "private/tls/fullchain.pem", "private/tls/privkey.pem",
    }  # fmt: skip
    assert all((folder / name).stat().st_mode & 0o077 == 0 for name in written)

    from mturk.service.api.authentication import read_keys
    from mturk.service.site.studies import read_studies

    password = (folder / "private" / "database-password").read_text()
    entry = (folder / "private" / "pgpass").read_text()
    assert entry == f"database:5432:giccs:giccs:{password}\n"
    assert list(read_keys(str(folder / "private" / "keys.toml"), {}).secrets) == ["lab"]
    assert read_studies(str(folder / "private" / "studies.toml")) == []


def test_the_page_names_services_and_commands_that_exist():
    from mturk.cli import COMMANDS

    for line in re.findall(r"docker compose (?:exec|run) .*", SECTION):
        words = [word for word in line.split()[3:] if not word.startswith("-")]
        assert words[0] in SERVICES, line
        if words[0] == "service":
            is_run = " run " in line  # the command of the container is the program
            assert is_run or words[1:3] == ["giccs", "annotate"], line
            assert words[1 if is_run else 3] in COMMANDS, line


def test_ci_takes_the_settings_from_the_page():
    script = (ROOT / ".ci" / "containers.sh").read_text("utf-8")
    expression = re.search(r"sed -n '(.*?)' docs/operations/service.md", script)[1]
    lines = subprocess.check_output(
        ["sed", "-n", expression, ROOT / "docs/operations/service.md"], text=True
    )
    assert lines == "".join(f"{line}\n" for line in settings_commands())
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    assert {"run": "bash .ci/containers.sh"} in workflow["jobs"]["containers"]["steps"]


@pytest.mark.parametrize(
    ("line", "found"),
    [("PASSWORD=abc", True), ("token: abc", True), ("POSTGRES_PASSWORD_FILE: /run/secrets/x", False),
     ("keys.toml: { file: private/keys.toml }", False)],
)  # fmt: skip
def test_a_secret_is_recognised(line, found):
    assert bool(SECRET.search(line)) == found


@pytest.fixture
def settings(tmp_path):
    path = tmp_path / "settings"
    path.write_text(
        "SITE_HOST=work.example.org\nFRAME_HOST=questions.example.org\nOWNER=1000:1000\n"
    )
    return path


def test_compose_accepts_its_file(settings):
    docker = shutil.which("docker")
    if not docker or subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        pytest.skip("docker compose is not installed")
    command = [docker, "compose", "--env-file", settings, "config", "--quiet"]
    result = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=300)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.skipif(not find_spec("check_jsonschema"), reason="check-jsonschema is not installed")
@pytest.mark.parametrize(("key", "accepted"), [("restart", True), ("restrat", False)])
def test_the_published_schema_accepts_the_compose_file(key, accepted, tmp_path):
    text = (FOLDER / "compose.yaml").read_text("utf-8")
    (tmp_path / "compose.yaml").write_text(text.replace("restart:", f"{key}:"), "utf-8")
    from check_jsonschema import main

    path = str(tmp_path / "compose.yaml")
    result = CliRunner().invoke(main, ["--builtin-schema", "vendor.compose-spec", path])
    assert result.exit_code == (0 if accepted else 1), result.output
    assert accepted or "'restrat' was unexpected" in result.output


def hadolint(text):
    return subprocess.run(
        [HADOLINT, "--no-color", "-"], input=text, capture_output=True, text=True, timeout=300
    )


@every_dockerfile
@pytest.mark.skipif(not HADOLINT, reason="hadolint is not installed")
def test_hadolint_accepts_the_images_and_finds_unpinned_ones(path):
    text = path.read_text("utf-8")
    result = hadolint(text)
    assert (result.returncode, result.stdout) == (0, "")
    assert (
        "DL3006" in hadolint(text.replace("FROM python:3.13-slim-trixie\n", "FROM python\n")).stdout
    )
