"""docs/reference/cli.md is what the commands say of themselves today."""

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
