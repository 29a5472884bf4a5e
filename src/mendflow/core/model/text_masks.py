"""Masks texts that nobody is shown: in what jobs print, in faults and in outputs.

A masked text becomes as many stars, so that the places in a log stay what they are: a part of a log that is read by its
place is the same with and without the mask, and a file can be masked where it stands."""

import json
from collections.abc import Iterable, Iterator

import msgspec

from mendflow.core.model.jobs import Outcome
from mendflow.core.model.secrets import MASKED_CHARS_MIN
from mendflow.core.model.text_search import SHORT_BYTES, TextSearch
from mendflow.core.model.values import Value
from mendflow.lazy import lazy_pattern

LINE_CHARS_MIN = 8
"""Lines of a text of several lines are masked by themselves if they are no shorter."""
BASE64_CHARS_MIN = 8
"""A shorter part of a text in base64 is not masked: it may be there by chance."""
BEGINNING_BYTES = 8
"""So much of a masked text is looked for at the end of others, before the rest is compared."""
WRAPPED_CHARS_MIN = 16
"""Tools that break a text into lines leave at least so many characters in each."""
SHORT_BYTES_WRAPPED = SHORT_BYTES + 2 * (SHORT_BYTES // WRAPPED_CHARS_MIN + 1)
LINE_ENDS = b"\r\n"
STAR = ord("*")
_WRAPPABLE = lazy_pattern(rb"[A-Za-z0-9+/=_-]{8,}")
"""A text that may be broken into lines: base64, hexadecimal digits, and most tokens."""
COMPARED_MAX = 64
"""At so many places the rest is compared; if there are more, the first of them counts as the beginning of the text."""


def forms_of(secret: str) -> list[str]:
    """The ways in which a secret may be printed: as it is, without the space around it, its lines, quoted for JSON,
    HTML or a URL, in hexadecimal, and in base64, whatever stands before and behind it."""
    text = secret.strip()
    plain = [secret, text, *(line.strip() for line in secret.splitlines() if len(line.strip()) >= LINE_CHARS_MIN)]
    quoted = [json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], _quoted_for_html(text)]
    for kept in ("", "/"):
        url = _quoted_for_url(text, kept)
        quoted += [url, url.replace("%20", "+"), _with_small_digits(url)]
    coded = [form for packed in _base64_forms(text) for form in (packed, packed.replace("+", "-").replace("/", "_"))]
    digits = [text.encode().hex(), text.encode().hex().upper()]
    found = [*plain, *quoted, *coded, *digits]
    return sorted({form for form in found if form.strip()}, key=len, reverse=True)


def _base64_forms(text: str) -> list[str]:
    """What base64 has of a text whatever it begins behind: three forms, as three bytes are four characters. At both
    ends a character that other bytes have a part in is left out."""
    content = text.encode()
    found = []
    for before in range(3):
        packed = _base64(b"\0" * before + content)
        found.append(packed[-(-4 * before // 3) : 4 * (before + len(content)) // 3])
    alone = [_base64(each.encode()) for each in (text, f"{text}\n")]
    return [*alone, *(form for form in found if len(form) >= BASE64_CHARS_MIN)]


def _base64(content: bytes) -> str:
    """As JSON has bytes."""
    return msgspec.json.encode(content)[1:-1].decode()


def _quoted_for_html(text: str) -> str:
    for letter, name in (("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot"), ("'", "#x27")):
        text = text.replace(letter, f"&{name};")
    return text


def _with_small_digits(url: str) -> str:
    parts = url.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])


def _quoted_for_url(text: str, kept: str = "") -> str:
    plain = f"_.-~{kept}"
    return "".join(
        chr(byte) if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in plain) else f"%{byte:02X}"
        for byte in text.encode()
    )


class TextMask:
    """Texts that are masked, the longest first."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts = tuple(dict.fromkeys(text for text in texts if text))
        self._bytes = tuple(text.encode() for text in self._texts)
        self._wrapped = tuple(text for text in self._bytes if _WRAPPABLE.fullmatch(text))
        self._search, self._search_wrapped = TextSearch(self._bytes), TextSearch(self._wrapped)
        self.margin = max(map(_wrapped_bytes, self._bytes), default=0)
        """So many bytes around a place can belong to a text there."""

    @classmethod
    def of_secrets(cls, values: Iterable[str]) -> "TextMask":
        return cls(sorted((form for value in values for form in forms_of(value)), key=len, reverse=True))

    def __bool__(self) -> bool:
        return bool(self._texts)

    def mask(self, text: str) -> str:
        return self._mask_text(text, 0)

    def _mask_text(self, text: str, chars_min: int) -> str:
        """Mask the texts that have at least so many characters."""
        if not self._texts or not text:
            return text
        data = text.encode(errors="surrogatepass")
        for number in self._search.found(data):
            hidden = self._texts[number]
            if len(hidden) >= chars_min:
                text = text.replace(hidden, "*" * len(hidden))
        if "\n" not in text:
            return text
        data = text.encode(errors="surrogatepass")
        masked = self._mask_wrapped(data, chars_min)
        return text if masked is data else masked.decode(errors="surrogatepass")

    def mask_bytes(self, data: bytes) -> bytes:
        for number in self._search.found(data):
            hidden = self._bytes[number]
            data = data.replace(hidden, b"*" * len(hidden))
        return self._mask_wrapped(data, 0)

    def _mask_wrapped(self, data: bytes, chars_min: int) -> bytes:
        """Mask texts where they go on in the next line, as base64 does after 76 characters. The lines stay."""
        if not self._wrapped or b"\n" not in data:
            return data
        joined = data.translate(None, LINE_ENDS)
        found = [self._wrapped[number] for number in self._search_wrapped.found(joined)]
        if not (found := [text for text in found if len(text) >= chars_min]):
            return data
        places, masked = _places(data), bytearray(data)
        starred = 0  # all before is done: what several texts cover is covered once
        for first, last in sorted(covered for text in found for covered in _covered(joined, text)):
            for place in places[max(first, starred) : last]:
                masked[place] = STAR
            starred = max(starred, last)
        return bytes(masked)

    def whole(self, data: bytes) -> int:
        """How many of these bytes there are without the beginning of a masked text at their end."""
        ends = [len(data)]
        for number in self._search.may_begin(data[-SHORT_BYTES:]):
            hidden = self._bytes[number]
            tail = data[-len(hidden) + 1 :] if len(hidden) > 1 else b""
            if (first := _beginning_at_end(tail, hidden)) is not None:
                ends.append(len(data) - len(tail) + first)
        joined = data[-SHORT_BYTES_WRAPPED:].translate(None, LINE_ENDS)
        for number in self._search_wrapped.may_begin(joined):
            hidden = self._wrapped[number]
            tail = data[-_wrapped_bytes(hidden) :]
            joined = tail.translate(None, LINE_ENDS)
            if len(joined) < len(tail) and (first := _beginning_at_end(joined[1 - len(hidden) :], hidden)) is not None:
                missing = max(0, len(joined) - len(hidden) + 1)
                ends.append(len(data) - len(tail) + _places(tail)[missing + first])
        return min(ends)

    def mask_value(self, value: Value) -> Value:
        """The value itself, unless something in it is masked. Others compute with it, so that short texts, which may
        be in it by chance, stay."""
        if isinstance(value, str):
            return self._mask_text(value, MASKED_CHARS_MIN)
        if isinstance(value, list):
            return [self.mask_value(each) for each in value]
        if isinstance(value, dict):
            return {str(self.mask_value(key)): self.mask_value(each) for key, each in value.items()}
        return value

    def mask_texts(self, outcome: Outcome) -> Outcome:
        """The outcome with the end of its log and the message of its fault as they may be shown."""
        if not self._texts:
            return outcome
        fault = outcome.fault
        if fault is not None:
            fault = msgspec.structs.replace(
                fault,
                message=self.mask(fault.message),
                log_tail=self.mask(fault.log_tail),
                rejected_by=self.mask(fault.rejected_by),
            )
        return msgspec.structs.replace(
            outcome,
            fault=fault,
            log_tail=self.mask(outcome.log_tail),
            code_mismatch=self.mask(outcome.code_mismatch),
            undeclared_reads=self.mask(outcome.undeclared_reads),
            left_running=self.mask(outcome.left_running),
        )

    def mask_outcome(self, outcome: Outcome) -> Outcome:
        """The outcome with all its texts, its outputs and its values as they may be shown."""
        if not self._texts:
            return outcome
        outcome = self.mask_texts(outcome)
        fault = outcome.fault
        if fault is not None:
            fault = msgspec.structs.replace(
                fault, data=self.mask_value(fault.data), file=str(self.mask_value(fault.file))
            )
        return msgspec.structs.replace(
            outcome,
            fault=fault,
            outputs=self.mask_value(outcome.outputs),
            values={name: self.mask_value(each) for name, each in outcome.values.items()},
        )


def _wrapped_bytes(hidden: bytes) -> int:
    """How long a text may be with the ends of lines in it."""
    return len(hidden) + 2 * (len(hidden) // WRAPPED_CHARS_MIN + 1)


def _covered(data: bytes, text: bytes) -> Iterator[tuple[int, int]]:
    """From where to where occurrences of the text stand, those together that overlap. Each is left at its last overlap:
    a text that repeats itself occurs at every byte."""
    at = data.find(text)
    while at >= 0:
        first, last = at, at + len(text)
        while (at := data.rfind(text, at + 1, last + len(text))) >= 0:
            last = at + len(text)
        yield first, last
        at = data.find(text, last)


def _places(data: bytes) -> list[int]:
    """Where the bytes are that end no line."""
    return [place for place, byte in enumerate(data) if byte not in LINE_ENDS]


def _beginning_at_end(tail: bytes, hidden: bytes) -> int | None:
    """The first place from which `tail` is the beginning of `hidden`, in a time that grows with their length only."""
    beginning, compared = hidden[:BEGINNING_BYTES], 0
    at = tail.find(beginning)
    while at >= 0:
        compared += 1
        if compared > COMPARED_MAX or hidden.startswith(tail[at:]):
            return at
        at = tail.find(beginning, at + 1)
    last = range(max(0, len(tail) - BEGINNING_BYTES + 1), len(tail))
    return next((at for at in last if hidden.startswith(tail[at:])), None)


class StreamMask:
    """Masks what comes in pieces: the beginning of a masked text at the end of a piece waits for the next one."""

    def __init__(self, mask: TextMask) -> None:
        self._mask = mask
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        data = self._rest + data
        whole = self._mask.whole(masked := self._mask.mask_bytes(data))
        self._rest = data[whole:]
        return masked[:whole]

    def end(self) -> bytes:
        rest, self._rest = self._rest, b""
        return self._mask.mask_bytes(rest)
