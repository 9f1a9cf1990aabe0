"""How a question stands in a page of the site: the frame's address, its sandbox, and what it may load."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit, urlunsplit

from mturk.question_xml import ExternalQuestion, HTMLQuestion, read
from mturk.service.site.headers import origin_of
from mturk.service.site.links import Shown, frame_link
from mturk.service.site.visit import Site, Visit

__all__ = ["QuestionFrame", "question_frame"]

SANDBOX = "allow-scripts allow-forms allow-modals"
OTHERS = f"{SANDBOX} allow-same-origin allow-popups"
"""For a requester's own site, which is another origin than ours and may keep its own cookies."""
HEIGHT = 640


@dataclass(frozen=True, slots=True)
class QuestionFrame:
    """An iframe."""

    address: str
    sandbox: str
    height: int
    """In pixels, until the question says how high it is."""
    sources: tuple[str, ...]
    """What the page's policy must let the frame load: the question, and the site's answer to the form."""


def question_frame(
    visit: Visit, question_xml: str, hit_id: str, assignment_id: str
) -> QuestionFrame:
    """Return the frame that shows a question to the visitor."""
    site, question = visit.site, read(question_xml)
    shown = Shown(hit_id, assignment_id, visit.worker, visit.language)
    answers = f"{site.site_url}/submit/"
    if isinstance(question, ExternalQuestion):
        return QuestionFrame(
            _with_query(question.url, shown.parameters(site.site_url, site.secret)),
            _sandbox(site, question.url),
            question.frame_height or HEIGHT,
            (origin_of(question.url), answers),
        )
    address = frame_link(site.frame_url, site.site_url, site.secret, shown)
    height = question.frame_height if isinstance(question, HTMLQuestion) else 0
    return QuestionFrame(address, SANDBOX, height or HEIGHT, (f"{site.frame_url}/", answers))


def _sandbox(site: Site, url: str) -> str:
    """Return the sandbox of another site's page; what is on our own origins never gets them."""
    ours = {origin_of(site.site_url), origin_of(site.frame_url)}
    return SANDBOX if origin_of(url).lower() in ours else OTHERS


def _with_query(url: str, parameters: dict[str, str]) -> str:
    """Append parameters to an address that may have a query and a fragment.

    >>> _with_query("https://a.example/t?x=1#top", {"hitId": "3"})
    'https://a.example/t?x=1&hitId=3#top'
    """
    parts = urlsplit(url)
    query = "&".join(filter(None, (parts.query, urlencode(parameters))))
    return urlunsplit(parts._replace(query=query))
