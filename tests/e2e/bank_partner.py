"""A bank as a process of its own: `bank_partner.py PORT FOLDER`. It notes each call in a file, offers twice the sum, is
broke for 13, says what nobody declared for 14, dies over the first 15, answers 16 when there is a file `awake`, and
offers the number of its own port for 17."""

import os
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
BANK = "urn:test:bank"


def fault(detail: str) -> str:
    return f"<e:Fault><faultcode>e:Server</faultcode><faultstring>no</faultstring><detail>{detail}</detail></e:Fault>"


class Bank(BaseHTTPRequestHandler):
    folder: Path

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        found = re.search(r"sum[^>]*>(\d+)<", text)
        assert found is not None, text
        value = int(found[1])
        one_way = "tell" in self.headers["SOAPAction"]
        with (self.folder / "calls").open("a") as calls:
            calls.write(f"{'told' if one_way else 'asked'} {value}\n")
        if value == 15 and not (self.folder / "died").exists():
            (self.folder / "died").touch()
            os._exit(1)
        while value == 16 and not (self.folder / "awake").exists():
            time.sleep(0.05)
        if "transfer" in self.headers["SOAPAction"]:
            owner = re.search(r"<from[^>]*>(\w+)<", text)
            assert owner is not None, text
            left = (
                f'<r:transferResponse xmlns:r="urn:test:rpc"><left>{value + len(owner[1])}</left></r:transferResponse>'
            )
            self.reply(200, left)
        else:
            self.reply(202, "") if one_way else self.reply(*self.answer(value))

    def answer(self, value: int) -> tuple[int, str]:
        if value == 13:
            return 500, fault(f'<broke xmlns="{BANK}">not a penny</broke>')
        if value == 14:
            return 500, fault(f'<surprise xmlns="{BANK}">the vault is open</surprise>')
        offered = sys.argv[1] if value == 17 else 2 * value
        return 200, f'<offer xmlns="{BANK}">{offered}</offer>'

    def reply(self, status: int, body: str) -> None:
        whole = f'<e:Envelope xmlns:e="{SOAP}"><e:Body>{body}</e:Body></e:Envelope>' if body else ""
        self.send_response(status)
        self.send_header("Content-Type", "text/xml; charset=utf-8")
        self.send_header("Content-Length", str(len(whole)))
        self.end_headers()
        self.wfile.write(whole.encode())


if __name__ == "__main__":
    Bank.folder = Path(sys.argv[2])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Bank).serve_forever()
