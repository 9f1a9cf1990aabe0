"""docs/reference/cli.md is what the commands say of themselves today."""

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "docs" / "generate_cli.py"


def test_the_generated_page_is_fresh():
    spec = importlib.util.spec_from_file_location("generate_cli", SCRIPT)
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert generate.PAGE.read_text("utf-8") == generate.page(), "run: make cli"
