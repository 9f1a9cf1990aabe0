"""Commands as a person calls them, without a process of their own, whose start takes seconds."""

import os
import tomllib
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).parents[1]
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]


def run(name, *arguments, cwd, env=None):
    """Call a command in this process and a folder; return what subprocess.run does. Its errors are raised."""
    module, _, function = SCRIPTS[name].partition(":")
    command = getattr(import_module(module), function)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        patch.setenv(
            "HF_HUB_OFFLINE", os.environ.get("HF_HUB_OFFLINE", "1")
        )  # a command may set it
        done = CliRunner(env=env).invoke(command, [*map(str, arguments)], prog_name=name)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return SimpleNamespace(returncode=done.exit_code, stdout=done.stdout, stderr=done.stderr)
