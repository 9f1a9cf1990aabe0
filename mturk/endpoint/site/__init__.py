"""Where people work: the worker site, and the separate origin that shows the questions."""

from __future__ import annotations

from mturk.endpoint.site.app import build_site
from mturk.endpoint.site.frame import build_frame
from mturk.endpoint.site.links import study_link, worker_link
from mturk.endpoint.site.rates import Rate, Rates
from mturk.endpoint.site.study import Study

__all__ = ["Rate", "Rates", "Study", "build_frame", "build_site", "study_link", "worker_link"]
