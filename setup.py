"""The description on a package index: README.md, whose relative links would not work there.

If [project.urls] of pyproject.toml has Source, the address of the repository, they are made absolute. Without
it, links and pictures are replaced by their text.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
RELATIVE_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^]]*)\]\((?!https://|#)(?P<target>[^)]*)\)")


def index_description(readme: str, source: str = "") -> str:
    """Return the text with absolute links to `source`, or without relative links."""

    def absolute(link: re.Match[str]) -> str:
        folder = "raw" if link["image"] else "blob"
        return f"{link['image']}[{link['text']}]({source}/{folder}/HEAD/{link['target']})"

    return RELATIVE_LINK.sub(absolute if source else r"\g<text>", readme)


if __name__ == "__main__":
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    setup(
        long_description=index_description(
            (ROOT / "README.md").read_text("utf-8"), urls.get("Source", "")
        ),
        long_description_content_type="text/markdown",
    )
