"""A server on this machine that does what stands in its `script`, and remembers what it was asked."""

import threading
from contextlib import contextmanager
from http.server import ThreadingHTTPServer


class Listening(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        self.script, self.seen, self.lock = [], [], threading.Lock()
        self.released = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request, client_address):
        pass  # a client that has given up is no error here

    @contextmanager
    def serving(self):
        with self:
            thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            yield self
            self.released.set()
            self.shutdown()
            thread.join()
