"""Write the files of docs/examples/giccs-plugin to docs/how-to/plugins.md: make cli."""

from __future__ import annotations

from pathlib import Path

from benchmarks.machine import replace_block

DOCS = Path(__file__).parent
PAGE = DOCS / "how-to" / "plugins.md"
EXAMPLE = DOCS / "examples" / "giccs-plugin"
FILES = {
    "pyproject-toml": "pyproject.toml",
    "giccs_plugin-py": "giccs_plugin.py",
    "hard_tuples-py": "hard_tuples.py",
    "left_right-py": "left_right.py",
    "acceptability-init": "acceptability/__init__.py",
    "acceptability-page": "acceptability/page.html",
    "acceptability-texts": "acceptability/texts.en.toml",
    "luxembourgish-po": "luxembourgish/lb.po",
}
"""Block of the page -> file."""
LANGUAGES = {".py": "python", ".toml": "toml", ".html": "html+jinja", ".po": "po"}


def block(file: str) -> str:
    """Return a file as a block of code."""
    return f"```{LANGUAGES[Path(file).suffix]}\n{(EXAMPLE / file).read_text('utf-8').strip()}\n```"


if __name__ == "__main__":
    for name, file in FILES.items():
        replace_block(PAGE, name, block(file))
