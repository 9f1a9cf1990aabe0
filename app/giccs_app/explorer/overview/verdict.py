"""The verdict on the study, at the top of the page "Overview"."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from bws.base.notes import sentence
from bws.base.problems import InputError
from giccs_app.explorer.analysis_view import show_drawing
from giccs_app.explorer.caching import cached, reliability_of
from giccs_app.explorer.display import offer_view
from giccs_app.explorer.labels import plain, say
from giccs_app.explorer.labels.remarks import local_remark, local_title
from giccs_app.explorer.results import results_of
from giccs_app.explorer.study import Study, stamp

if TYPE_CHECKING:
    from giccs.report.verdict import Finding

AXES_HEIGHT = 80
"""Height in pixels of the axis of a strip with its title."""


def show_verdict(study: Study) -> None:
    """Show the four answers, each with its chart and a button that opens the evidence."""
    from giccs.report.verdict import QUESTIONS

    with st.spinner(say("overview.working")):
        folder = None if study.store is None else str(study.store.folder)
        answers = _findings(study, stamp(folder))
    for finding in answers:
        if study.is_plain and finding.name == "models":
            continue
        left, right = st.columns([3, 2], gap="large", vertical_alignment="center")
        with left:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{local_title(QUESTIONS[finding.name])}**", width="content")
                if finding.opens and not (study.is_plain and finding.name == "items"):
                    offer_view("overview.evidence", finding.name, **finding.opens)
            remarks = map(local_remark, finding.sentences)
            st.markdown(" ".join(plain(sentence(remark)) for remark in remarks))
        if finding.draw is not None:
            with right:
                drawing = finding.draw(local_title)
                height = drawing.size["height"] + AXES_HEIGHT
                show_drawing(drawing, f"verdict {finding.name}", files=False, height=height)
                for remark in drawing.remarks:
                    st.caption(plain(sentence(local_remark(remark))))


@cached
def _findings(study: Study, results: str) -> list[Finding]:
    """Return the answers from the judgments and results of a study; results: changes with the results."""
    from giccs.report.verdict import findings
    from giccs_app.explorer.models.comparisons import compare_results

    stored = results_of(study).results
    comparison, problems = compare_results(study, stored) if stored else (None, [])
    if problems:
        raise InputError(problems)
    judgments, key = study.judgments, study.judgments_key
    reliability = None if judgments is None else reliability_of(key, judgments)
    return findings(judgments, stored, reliability, comparison)
