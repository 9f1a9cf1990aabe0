"""Where people work: the worker site, and the separate origin that shows the questions."""

from __future__ import annotations

from mturk.service.site.app import build_site
from mturk.service.site.frame import build_frame
from mturk.service.site.links import study_link, worker_link
from mturk.service.site.rate_limits import Rate, Rates
from mturk.service.site.studies import Study

__all__ = ["Rate", "Rates", "Study", "build_frame", "build_site", "study_link", "worker_link"]
