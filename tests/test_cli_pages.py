"""docs/reference/cli.md and giccs/keywords.py are what the options say of themselves today."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# In a process of its own: tasks that other tests register would be among the choices.
PROGRAM = (
    "import sys; from generate_cli import page; sys.stdout.buffer.write(page().encode('utf-8'))"
)


def test_the_generated_page_is_fresh():
    page = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT / "docs", capture_output=True, check=True
    )
    expected = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    assert expected == page.stdout.decode("utf-8"), "run: make cli"


def test_the_generated_keywords_are_fresh():
    program = (
        "from generate_keywords import MODULE, module; print(MODULE.read_text('utf-8') == module())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT / "docs", capture_output=True, check=True
    )
    assert done.stdout.strip() == b"True", "run: make cli"
