"""An FTP server for one user, over a folder."""

import os
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar


class FtpSession(socketserver.StreamRequestHandler):
    """One client. Everything but the login needs the right password."""

    root: ClassVar[Path]
    user: ClassVar[str]
    password: ClassVar[str]
    logins: ClassVar[list[tuple[str, bool]]]

    def handle(self) -> None:
        self.name, self.known, self.moved, self.offset = "", False, "", 0
        self.passive: socket.socket | None = None
        self.say("220 ready")
        while line := self.rfile.readline():
            word, _, rest = line.decode().rstrip("\r\n").partition(" ")
            if word == "QUIT":
                self.say("221 bye")
                return
            if word not in ("USER", "PASS") and not self.known:
                self.say("530 log in first")
                continue
            command = getattr(self, f"do_{word.lower()}", None)
            try:
                self.say(command(rest) if command else f"502 {word} is not known")
            except OSError as error:
                self.say(f"550 {error.strerror}")

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())

    def path(self, name: str) -> Path:
        return self.root / name.lstrip("/")

    def do_user(self, name: str) -> str:
        self.name = name
        return "331 and the password?"

    def do_pass(self, password: str) -> str:
        self.known = (self.name, password) == (self.user, self.password)
        self.logins.append((self.name, self.known))
        return "230 welcome" if self.known else "530 wrong"

    def do_type(self, _: str) -> str:
        return "200 ok"

    def do_pwd(self, _: str) -> str:
        return '257 "/"'

    def do_rest(self, offset: str) -> str:
        self.offset = int(offset)
        return "350 ok"

    def do_cwd(self, name: str) -> str:
        os.listdir(self.path(name))
        return "250 ok"

    def do_size(self, name: str) -> str:
        if not self.path(name).is_file():
            return "550 no such file"
        return f"213 {self.path(name).stat().st_size}"

    def do_mkd(self, name: str) -> str:
        self.path(name).mkdir()
        return f'257 "{name}"'

    def do_dele(self, name: str) -> str:
        self.path(name).unlink()
        return "250 ok"

    def do_rnfr(self, name: str) -> str:
        self.moved = name
        return "350 to what?"

    def do_rnto(self, name: str) -> str:
        self.path(self.moved).replace(self.path(name))
        return "250 ok"

    def do_epsv(self, _: str) -> str:
        self.passive = socket.create_server(("127.0.0.1", 0))
        return f"229 ok (|||{self.passive.getsockname()[1]}|)"

    def do_pasv(self, _: str) -> str:
        self.do_epsv("")
        assert self.passive is not None
        high, low = divmod(self.passive.getsockname()[1], 256)
        return f"227 ok (127,0,0,1,{high},{low})"

    def do_mlsd(self, name: str) -> str:
        lines = [
            f"type={'dir' if each.is_dir() else 'file'};size={each.stat().st_size};modify=20260101000000; {each.name}"
            for each in self.path(name).iterdir()
        ]
        return self.send("".join(f"{line}\r\n" for line in lines).encode())

    def do_retr(self, name: str) -> str:
        offset, self.offset = self.offset, 0
        return self.send(self.path(name).read_bytes()[offset:])

    def do_stor(self, name: str) -> str:
        with self.path(name).open("wb") as file, self.data() as line:
            while piece := line.recv(65536):
                file.write(piece)
        return "226 taken"

    def send(self, content: bytes) -> str:
        with self.data() as line:
            line.sendall(content)
        return "226 sent"

    @contextmanager
    def data(self) -> Iterator[socket.socket]:
        assert self.passive is not None
        self.say("150 go on")
        line, _ = self.passive.accept()
        self.passive.close()
        with line:
            yield line


@contextmanager
def ftp_server(root: Path, user: str, password: str) -> Iterator[tuple[int, list[tuple[str, bool]]]]:
    """Its port, and who logged in, with whether the password was right."""
    logins: list[tuple[str, bool]] = []
    known = {"root": root, "user": user, "password": password, "logins": logins}
    session = type("Session", (FtpSession,), known)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), session) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_address[1], logins
        server.shutdown()
        thread.join()
