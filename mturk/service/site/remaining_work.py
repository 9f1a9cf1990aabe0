"""What is left to do for a participant of a study."""

from __future__ import annotations

from mturk.service.rules.participation import StudyProgress
from mturk.service.rules.work import Offer
from mturk.service.site.studies import PanelStudy
from mturk.service.site.visit import Visit


def offers_of_study(visit: Visit, study: PanelStudy | None, worker: str) -> list[Offer]:
    """Return the HITs of a study that a worker can accept; of all HITs without a study."""
    group_id = study.group_id if study else None
    offers = visit.site.work.offers(worker, limit=1000)
    return [offer for offer in offers if offer.eligible and group_id in (None, offer.group_id)]


def has_done_enough(study: PanelStudy | None, progress: StudyProgress) -> bool:
    """Return whether a participant has submitted all HITs of the study or received its code."""
    limit = study.hits if study else None
    return progress.is_completed or (limit is not None and progress.submitted_now >= limit)


def has_finished(
    visit: Visit, study: PanelStudy | None, worker: str, progress: StudyProgress
) -> bool:
    """Return whether a participant has submitted tasks of the study, and all that there are to do."""
    return has_done_enough(study, progress) or (
        progress.submitted_now > 0 and not offers_of_study(visit, study, worker)
    )
