"""Models behind an OpenAI-compatible server: how is one asked, and what does that cost?

address     which server, and may the key go there?
request     what may be asked, and what comes of it
cache       answers that were had before: a rerun costs nothing
wire        one request to the server, and what may come back
threads     several at a time, and none begun once one has failed
usage       requests, tokens, dollars
asking      all of it behind one call
"""

from __future__ import annotations

from giccs.models.served.asking import Asker, open_server

__all__ = ["Asker", "open_server"]
