"""A new address of a study's service: verified by the HITs that exist there, then recorded."""

from __future__ import annotations

from typing import Any

from bws.base.problems import InputError, Problem
from mturk.limits import PAGE_SIZE
from mturk.study.client import translate_errors
from mturk.study.ledger import Ledger


def change_address(client: Any, ledger: Ledger, url: str) -> None:
    """Record the new address of the study's service; InputError if the service there has none of its HITs.

    client: client of the service at the new address. HITs are recognised by their ids, or by their
        annotations if the ledger contains no id yet.
    """
    hits = {(hit.hit_id, hit.annotation) for hit in ledger.hits() if hit.hit_id}
    annotations = set() if hits else {hit.annotation for hit in ledger.hits()}
    pages = client.get_paginator("list_hits").paginate(
        PaginationConfig={"PageSize": PAGE_SIZE.maximum}
    )
    with translate_errors():
        listed = (
            (hit["HITId"], hit.get("RequesterAnnotation")) for page in pages for hit in page["HITs"]
        )
        is_same = any(hit in hits or hit[1] in annotations for hit in listed)
    if not is_same:
        message = (
            f"is the ledger of a study at {ledger.study().endpoint}; the service at {url} has none of its "
            f"{len(ledger.hits())} HITs; expected the new address of the same service, or another --ledger"
        )
        raise InputError(Problem(ledger.path, None, message))
    ledger.set_endpoint(url)
