"""A place on the web that can be slow, break off, and knows ranges or does not."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Web(ThreadingHTTPServer):
    """`cut` is after how many bytes each of the next answers breaks off; `slow_s` passes between two pieces. `moved` is
    where everything is now."""

    daemon_threads = True

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.content = content
        self.ranges = True
        self.cut: list[int] = []
        self.slow_s = 0.0
        self.piece_bytes = 1 << 16
        self.sent = 0
        self.asked: list[dict[str, str]] = []
        self.status = 200
        self.moved = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file"

    def handle_error(self, *_: object) -> None: ...  # clients are killed here


class _Answer(BaseHTTPRequestHandler):
    server: Web

    def do_GET(self) -> None:
        server = self.server
        server.asked.append(dict(self.headers))
        if server.moved:
            self.send_response(302)
            self.send_header("Location", server.moved)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if server.status != 200:
            self.send_error(server.status)
            return
        begin = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-")) if server.ranges else 0
        if begin >= len(server.content) > 0:
            self.send_error(416)
            return
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(server.content) - 1}/{len(server.content)}")
        self.send_header("Content-Length", str(len(server.content) - begin))
        self.end_headers()
        end = begin + server.cut.pop(0) if server.cut else len(server.content)
        for at in range(begin, min(end, len(server.content)), server.piece_bytes):
            piece = server.content[at : min(at + server.piece_bytes, end)]
            self.wfile.write(piece)
            server.sent += len(piece)
            time.sleep(server.slow_s)
        self.close_connection = True

    def log_message(self, *_: object) -> None: ...


@contextmanager
def web(content: bytes) -> Iterator[Web]:
    with Web(content) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
