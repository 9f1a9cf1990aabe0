"""A server that does whatever a server may do to its clients, one function per fault.

Each function is given the handler, which has read the request.
"""

import json
from http.server import BaseHTTPRequestHandler

from .listening import Listening


def send(handler, content, status=200, kind="application/json", **headers):
    content = content if isinstance(content, bytes) else json.dumps(content).encode()
    handler.send_response(status)
    for name, value in {"Content-Type": kind, "Content-Length": len(content), **headers}.items():
        handler.send_header(name.replace("_", "-"), str(value))
    handler.end_headers()
    handler.wfile.write(content)


def rate_limited(handler):
    send(handler, {"error": {"message": "slow down"}}, 429, Retry_After="0.01")


def broken(handler):
    send(handler, {"error": {"message": "Ausfall"}}, 500, retry_after_ms=1)


def closed(handler):
    handler.close_connection = True


def cut(handler):
    """Fewer bytes than were announced."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [{"mess')
    handler.close_connection = True


def half(handler):
    """As many bytes as were announced, but half a document."""
    send(handler, b'{"id": "x", "model": "tiny-0314", "choices')


def page(handler):
    send(handler, b"<html>Bitte melden Sie sich an.</html>", kind="text/html")


def list_of_nothing(handler):
    send(handler, [])


def stalled(handler):
    handler.server.released.wait()


def dripping(handler):
    """A byte at a time, without end: none is late, but the answer never comes."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    while not handler.server.released.wait(0.01):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def packed(handler):
    send(handler, b"\x1f\x8b\x08\x00", Content_Encoding="gzip")


class Hostile(Listening):
    """Does what stands in `script`, one request after the other, and then `always` the same."""

    def __init__(self, always):
        super().__init__(Handler)
        self.always = always


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.seen.append((self.path, self.headers, self.body))
            act = self.server.script.pop(0) if self.server.script else self.server.always
        act(self)

    def do_GET(self):
        self.server.seen.append((self.path, self.headers, None))
        send(self, {})

    def log_message(self, *_):
        pass
