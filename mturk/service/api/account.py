"""The simulated account balance, and notifications, which are recorded but not sent."""

from __future__ import annotations

import logging

from sqlalchemy import insert, select, update

from mturk.service.api.call import Answer, Call, Parameters
from mturk.service.api.hit_types import hit_type_row
from mturk.service.errors import validation_error
from mturk.service.rules import escrow
from mturk.service.store.schema import event, notification

log = logging.getLogger("mturk.notifications")


def get_account_balance(call: Call, parameters: Parameters) -> Answer:
    """GetAccountBalance: return the simulated balance."""
    available, on_hold = escrow.balance(call.connection)
    return {
        "AvailableBalance": escrow.dollars(available),
        "OnHoldBalance": escrow.dollars(on_hold),
    }


def update_notification_settings(call: Call, parameters: Parameters) -> Answer:
    """UpdateNotificationSettings: set which events of a HIT type are recorded."""
    if "Notification" not in parameters and "Active" not in parameters:
        raise validation_error("Notification or Active is required")
    if "Ping" in parameters.get("Notification", {}).get("EventTypes", ()):
        raise validation_error("Ping is an event of SendTestEventNotification only")
    kind = hit_type_row(call, parameters["HITTypeId"])
    of_type = notification.c.hit_type_id == kind.hit_type_id
    old = call.connection.execute(select(notification).where(of_type)).first()
    values = {
        "specification": parameters.get("Notification", old and old.specification),
        "active": parameters.get("Active", old.active if old else True),
    }
    if values["specification"] is None:
        raise validation_error(
            f"HIT type {kind.hit_type_id} has no Notification yet; Notification is required"
        )
    if old is None:
        row = {"hit_type_id": kind.hit_type_id, **values}
        call.connection.execute(insert(notification).values(**row))
    else:
        call.connection.execute(update(notification).where(of_type).values(**values))
    return {}


def send_test_event_notification(call: Call, parameters: Parameters) -> Answer:
    """SendTestEventNotification: record and log a test event; nothing is sent."""
    kind = parameters["TestEventType"]
    call.connection.execute(
        insert(event).values(kind=kind, specification=parameters["Notification"], at=call.now)
    )
    log.info("test notification %s recorded; notifications are not sent", kind)
    return {}
