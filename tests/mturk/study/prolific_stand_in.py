"""A stand-in of Prolific's API, for tests: it is not Prolific, and nobody is recruited or paid.

It follows the pages of https://docs.prolific.com/api-reference that were public in November 2026, and keeps
studies, submissions and payments. As documented there, a transition of a submission has no effect when
repeated, and paying the same bonuses twice pays them twice.
"""

import json
import time

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

TOKEN = "a-token-of-the-stand-in"
FEE = 4 / 3
STARTS = {"PUBLISH": "UNPUBLISHED", "PAUSE": "ACTIVE", "START": "PAUSED", "STOP": "ACTIVE PAUSED"}
ENDS = {"PUBLISH": "ACTIVE", "PAUSE": "PAUSED", "START": "ACTIVE", "STOP": "AWAITING REVIEW"}
DECIDABLE = ("AWAITING REVIEW", "ACTIVE", "TIMED-OUT")


class RefusalError(Exception):
    def __init__(self, status, detail):
        super().__init__(detail)
        self.status, self.detail = status, detail


class StandIn:
    """The state of the service; `choose(number)` returns the fault of a call, or None.

    number: number of the call, from 1. "429" and "500": refused before execution. "500 after", "drop after",
    "hang after": executed, but the response is a 500, truncated, or missing. "drop before": the
    same without execution.
    """

    def __init__(self):
        self.state = {
            "studies": {}, "submissions": {}, "bulks": {}, "payments": [], "published": [], "next": 1,
        }  # fmt: skip
        self.page_size = 3
        self.lists_payments = True
        self.calls, self.seen_hosts = [], []
        self.choose = lambda number: None
        self.app = Starlette(
            routes=[Route("/api/v1/{path:path}", self.answer, methods=["GET", "POST", "PATCH"])]
        )

    def snapshot(self):
        return json.dumps(self.state)

    def restore(self, snapshot):
        self.state = json.loads(snapshot)

    def new_id(self):
        self.state["next"] += 1
        return f"{self.state['next']:024x}"

    def submit(self, study_id, status="AWAITING REVIEW"):
        """A participant takes a place of the study; return the id of the submission."""
        submission_id = self.new_id()
        done = "2026-11-20T10:05:00Z" if status not in ("ACTIVE", "RESERVED") else None
        self.state["submissions"][submission_id] = {
            "id": submission_id, "study_id": study_id, "participant": self.new_id(), "status": status,
            "started_at": "2026-11-20T10:00:00Z", "completed_at": done, "study_code": "C0DE",
            "bonus_payments": [],
        }  # fmt: skip
        return submission_id

    def paid(self):
        """Return the payments as (kind, submission, cents), sorted."""
        return sorted(tuple(payment) for payment in self.state["payments"])

    def only_study(self):
        (study,) = self.state["studies"].values()
        return study

    # The API

    async def answer(self, request: Request):
        path = request.path_params["path"]
        self.calls.append(f"{request.method} {path}")
        fault = self.choose(len(self.calls))
        if fault == "429":
            return JSONResponse({"error": {"detail": "slow down"}}, 429, {"Retry-After": "7"})
        if fault == "500":
            return JSONResponse({}, 500)
        if fault == "drop before":
            return Dropped()
        body = json.loads(await request.body() or b"null")
        try:
            if request.headers.get("authorization") != f"Token {TOKEN}":
                raise RefusalError(401, f"invalid token {request.headers.get('authorization')}")
            response = self.execute(request.method, path, request.query_params, body)
        except RefusalError as error:
            response = JSONResponse({"error": {"detail": error.detail}}, error.status)
        return {
            "500 after": JSONResponse({}, 500), "drop after": Dropped(), "hang after": Hanging(),
        }.get(fault, response)  # fmt: skip

    def execute(self, method, path, query, body):
        match method, path.strip("/").split("/"):
            case "POST", ["study-cost-calculator"]:
                return JSONResponse(
                    {"total_cost": body["reward"] * body["total_available_places"] * FEE}
                )
            case "GET", ["studies"]:
                return self.page([*self.state["studies"].values()], query)
            case "POST", ["studies"]:
                return self.create(body)
            case "GET", ["studies", study_id]:
                return JSONResponse(self.find("studies", study_id))
            case "PATCH", ["studies", study_id]:
                return self.raise_places(study_id, body)
            case "POST", ["studies", study_id, "transition"]:
                return self.change_study(study_id, body["action"])
            case "GET", ["studies", study_id, "submissions"]:
                rows = [s for s in self.state["submissions"].values() if s["study_id"] == study_id]
                return self.page([listed(row) for row in rows], query)
            case "POST", ["submissions", "bonus-payments"]:
                return self.set_up(body["study_id"], body["csv_bonuses"])
            case "GET", ["submissions", submission_id]:
                return JSONResponse(self.shown(self.find("submissions", submission_id)))
            case "POST", ["submissions", submission_id, "transition"]:
                return self.change_submission(self.find("submissions", submission_id), body)
            case "POST", ["bulk-bonus-payments", bulk_id, "pay"]:
                return self.pay(self.find("bulks", bulk_id))
        raise RefusalError(404, f"no {method} {path}")

    def find(self, kind, key):
        if key not in self.state[kind]:
            raise RefusalError(404, f"no {key} in {kind}")
        return self.state[kind][key]

    def page(self, rows, query):
        first = int(query.get("offset", 0))
        some = rows[first : first + min(self.page_size, int(query.get("limit", 20)))]
        return JSONResponse({"results": some, "meta": {"count": len(rows)}})

    def create(self, body):
        study_id = self.new_id()
        dated = {"id": study_id, "status": "UNPUBLISHED", "date_created": f"{time.time():.6f}"}
        self.state["studies"][study_id] = {**body, **dated}
        return JSONResponse(self.state["studies"][study_id], 201)

    def raise_places(self, study_id, body):
        study = self.find("studies", study_id)
        if body["total_available_places"] < study["total_available_places"]:
            raise RefusalError(400, "places can only be raised")
        study.update(body)
        if study["status"] in ("AWAITING REVIEW", "COMPLETED"):
            study["status"] = "ACTIVE"
        return JSONResponse(study)

    def change_study(self, study_id, action):
        study = self.find("studies", study_id)
        if study["status"] not in STARTS[action]:
            raise RefusalError(400, f"the study is {study['status']}")
        study["status"] = ENDS[action]
        if action == "PUBLISH":
            self.state["published"].append(study_id)
        return JSONResponse(study)

    def change_submission(self, submission, body):
        study = self.state["studies"][submission["study_id"]]
        reward, kind, goal = study["reward"], "reward", "APPROVED"
        if body["action"] == "REJECT":
            reward, goal = 0, "REJECTED"
            if len(body["message"]) < 100 or not body["rejection_category"]:
                raise RefusalError(400, "the message must be at least 100 chars long")
        elif body["action"] == "COMPLETE":
            (code,) = [c for c in study["completion_codes"] if c["code"] == body["completion_code"]]
            reward, kind = code["actions"][0]["fixed_screen_out_reward"], "screen out"
            goal = "SCREENED OUT"
        if submission["status"] == goal:
            return JSONResponse(submission)
        if submission["status"] not in DECIDABLE:
            raise RefusalError(400, f"the submission is {submission['status']}")
        submission["status"] = goal
        if reward:
            self.state["payments"].append([kind, submission["id"], reward])
        return JSONResponse(submission)

    def set_up(self, study_id, rows):
        bonuses = [row.split(",") for row in rows.split("\n")]
        for submission_id, _ in bonuses:
            if self.find("submissions", submission_id)["study_id"] != study_id:
                raise RefusalError(400, f"{submission_id} is not of the study")
        bulk_id = self.new_id()
        cents = [[one, round(float(amount) * 100)] for one, amount in bonuses]
        self.state["bulks"][bulk_id] = cents
        amount = sum(n for _, n in cents)
        made = {"id": bulk_id, "study": study_id, "amount": amount, "total_amount": amount * FEE}
        return JSONResponse(made, 201)

    def pay(self, bulk):
        for submission_id, cents in bulk:
            self.state["payments"].append(["bonus", submission_id, cents])
        return JSONResponse("is being processed asynchronously", 202)

    def shown(self, submission):
        payments = [
            n
            for kind, one, n in self.state["payments"]
            if (kind, one) == ("bonus", submission["id"])
        ]
        return {**submission, "bonus_payments": payments if self.lists_payments else []}


def listed(submission):
    """Return a submission as in the list of a study."""
    row = {
        key: value
        for key, value in submission.items()
        if key not in ("participant", "bonus_payments")
    }
    return {**row, "participant_id": submission["participant"]}


class Dropped(Response):
    """A response that ends after its first byte."""

    async def __call__(self, scope, receive, send):
        headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"{"})


class Hanging(Response):
    """No response."""

    async def __call__(self, scope, receive, send):
        while (await receive())["type"] != "http.disconnect":
            pass
