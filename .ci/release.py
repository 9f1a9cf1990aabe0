"""Check that a tag can be released: python .ci/release.py vX.Y.Z.

Exit status: 0 if pyproject.toml, CITATION.cff, README.md and CHANGELOG.md are those of the version, else 1.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def problems(tag: str, root: Path) -> Iterator[str]:
    """Yield what does not fit the tag."""
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    if tag != f"v{version}":
        yield f"the tag is {tag}; expected v{version}, the version in pyproject.toml"
    for name, pattern in (
        ("CITATION.cff", rf"^version: {re.escape(version)}$"),
        ("CITATION.cff", r"^date-released: \d{4}-\d{2}-\d{2}$"),
        ("README.md", rf"version = {{{re.escape(version)}}}"),
        ("CHANGELOG.md", rf"^## {re.escape(version)} \(\d{{4}}-\d{{2}}-\d{{2}}\)$"),
    ):
        if not re.search(pattern, (root / name).read_text("utf-8"), re.M):
            yield f"{name} has no line {pattern}"


if __name__ == "__main__":
    found = list(problems(sys.argv[1], ROOT))
    print(*found, sep="\n")
    sys.exit(bool(found))
