"""Whoever speaks SOAP to a server: sends an envelope, and reads what comes back."""

import http.client
import threading
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from lxml import etree

from mendflow.core.model.flow import Flow
from mendflow.formats import load
from tests.patience import PATIENCE_S

EXAMPLES = Path(__file__).parents[2] / "examples" / "bpel"
WORDS = "urn:example:words"
ENVELOPE = (
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header>'
    '<a:MessageID xmlns:a="http://www.w3.org/2005/08/addressing">{id}</a:MessageID></s:Header>'
    "<s:Body>{body}</s:Body></s:Envelope>"
)
SORT = f'<sort xmlns="{WORDS}"><source>{{source}}</source><sorted>{{sorted}}</sorted><count>{{count}}</count></sort>'


class Away(Exception):
    """Nobody answered, or the line was cut."""


def send(url: str, body: str, id: str, *, action: str = "", timeout_s: float = 120) -> tuple[int, bytes]:
    """The status and the body of the answer."""
    headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": f'"{action}"'}
    request = Request(url, ENVELOPE.format(id=id, body=body).encode(), headers)
    try:
        with urlopen(request, timeout=timeout_s) as answer:
            return answer.status, answer.read()
    except HTTPError as refused:
        return refused.code, refused.read()
    except (URLError, http.client.HTTPException, OSError) as error:
        raise Away(str(error)) from error


def texts(answer: bytes) -> dict[str, str]:
    """What the elements of an answer say, by their names."""
    return {etree.QName(each).localname: each.text or "" for each in etree.fromstring(answer).iter("{*}*")}


class Asking(threading.Thread):
    """A request that is under way."""

    def __init__(self, url: str, body: str, id: str, *, action: str = "") -> None:
        super().__init__(daemon=True)
        self.url, self.body, self.id, self.action = url, body, id, action
        self.status, self.answer, self.away = 0, b"", ""
        self.start()

    def run(self) -> None:
        try:
            self.status, self.answer = send(self.url, self.body, self.id, action=self.action, timeout_s=PATIENCE_S)
        except Away as away:
            self.away = str(away)

    def said(self, seconds: float = 120) -> str:
        self.join(seconds)
        assert not self.is_alive() and not self.away, f"no answer from {self.url}: {self.away}"
        told = texts(self.answer)
        assert self.status == 200, told
        return told["said"]


def sorting(folder: Path, name: str, source: Path) -> str:
    """A request to sort a text, and to count its lines."""
    uris = [each.absolute().as_uri() for each in (source, folder / f"{name}.sorted", folder / f"{name}.count")]
    return SORT.format(source=uris[0], sorted=uris[1], count=uris[2])


def example(name: str, folder: Path, *changes: tuple[str, str], jobs: str = "mendflow:jobs") -> Flow:
    """A shipped process as a flow. What is changed of it is what its jobs run; `jobs` is where it finds its queue."""
    folder.mkdir(exist_ok=True)
    for wsdl in ("words.wsdl", "jobs.wsdl"):
        text = (EXAMPLES / wsdl).read_text().replace('"mendflow:jobs"', f'"{jobs}"')
        (folder / wsdl).write_text(text)
    text = (EXAMPLES / f"{name}.bpel").read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after, 1)
    (folder / f"{name}.bpel").write_text(text)
    return load(folder / f"{name}.bpel")
