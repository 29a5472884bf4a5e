"""Masked texts: whatever pieces a log comes in, no secret is in it, and its length stays."""

import base64
import time
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.text_masks import StreamMask, TextMask

SECRETS = ["hunter2-secret", "second/Token+x=", "line one of a key\nline two of a key\n"]


@given(
    st.lists(st.one_of(st.sampled_from(SECRETS), st.text(max_size=5), st.just("hunter2-")), max_size=8),
    st.lists(st.integers(0, 200), max_size=6),
)
def test_a_secret_is_masked_wherever_the_stream_is_cut(parts: list[str], cuts: list[int]) -> None:
    data = "".join(parts).encode(errors="replace")
    mask = TextMask.of_secrets(SECRETS)
    stream, places = StreamMask(mask), [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [stream.feed(data[start:end]) for start, end in pairwise(places)]
    masked = b"".join([*pieces, stream.end()])
    assert len(masked) == len(data)
    assert not any(secret.strip().encode() in masked for secret in SECRETS)


def test_base64_and_quoted_forms_are_masked() -> None:
    mask = TextMask.of_secrets(["second/Token+x="])
    for form in (
        base64.b64encode(b"second/Token+x=").decode(),
        base64.b64encode(b"second/Token+x=\n").decode(),
        "second%2FToken%2Bx%3D",
    ):
        assert mask.mask(f"<{form}>") == f"<{'*' * len(form)}>"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("width", [16, 60, 64, 76])
@given(before=st.binary(max_size=120), cuts=st.lists(st.integers(0, 300), max_size=4))
def test_what_goes_on_in_the_next_line_is_masked(before: bytes, cuts: list[int], width: int, end: str) -> None:
    secret = "hunter2-secret-that-is-long"
    mask = TextMask.of_secrets([secret])
    for packed in (base64.b64encode(before + secret.encode() + b"!"), (before + secret.encode()).hex().encode()):
        wrapped = end.join(packed.decode()[at : at + width] for at in range(0, len(packed), width)) + end
        masked = mask.mask(wrapped)
        assert [len(line) for line in masked.split(end)] == [len(line) for line in wrapped.split(end)]
        assert masked.count("*") >= len(secret)
        assert str(mask.mask_value(wrapped)) == masked == mask.mask_bytes(wrapped.encode()).decode()
        data, stream = wrapped.encode(), StreamMask(mask)
        places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
        pieces = [stream.feed(data[start:stop]) for start, stop in pairwise(places)]
        assert b"".join([*pieces, stream.end()]).decode() == masked


NOT_OF_THE_JOB = {"cached_from", "folder", "image", "name", "stage", "category"}
"""Texts that a job does not choose, or by which its faults are caught."""


def texts_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The secret in every field that is a text."""
    return {
        field.name: "is hunter2-secret"
        for field in msgspec.structs.fields(kind)
        if field.type is str and field.name not in NOT_OF_THE_JOB
    }


def test_outcomes_are_masked_in_every_text() -> None:
    texts = texts_of(Fault)
    assert {"message", "log_tail", "file"} <= set(texts)
    fault = Fault(name="x", category=Category.JOB, data={"a": ["hunter2-secret"]}, **texts)
    texts = texts_of(Outcome)
    assert {"log_tail", "left_running", "undeclared_reads"} <= set(texts)
    outcome = Outcome(fault=fault, outputs={"k": "is hunter2-secret"}, values={"v": "hunter2-secret"}, **texts)
    masked = TextMask.of_secrets(["hunter2-secret"]).mask_outcome(outcome)
    assert "hunter2" not in repr(masked)
    assert masked.outputs == {"k": "is **************"}


def test_a_short_secret_is_masked_in_texts_and_not_in_results() -> None:
    outcome = Outcome(outputs={"2024": "2024-01-01"}, values={"day": "2024-01-01"}, log_tail="it is 2024")
    masked = TextMask.of_secrets(["2024"]).mask_outcome(outcome)
    assert (masked.outputs, masked.values) == (outcome.outputs, outcome.values)
    assert masked.log_tail == "it is ****"


@given(st.text("ab", min_size=1, max_size=40), st.text("ab", max_size=80))
def test_what_waits_is_the_longest_end_that_a_masked_text_begins_with(hidden: str, data: str) -> None:
    ends = [at for at in range(len(data)) if len(data) - at < len(hidden) and hidden.startswith(data[at:])]
    assert TextMask([hidden]).whole(data.encode()) == min(ends, default=len(data))


def test_the_end_of_a_log_is_compared_with_a_large_secret_in_few_steps() -> None:
    mask, data = TextMask(["ab" * (32 << 10)]), ("ab" * (32 << 10))[:-2].encode() + b"b!"
    for _ in range(250):  # in a time that grows with the square of its size this takes longer than any test may
        mask.whole(data)


@pytest.mark.parametrize("before", ["", "u:", "me:", "user:", "a longer name:"])
@pytest.mark.parametrize("behind", ["", "\n", ":x", "@host"])
def test_a_secret_in_base64_is_masked_whatever_it_stands_between(before: str, behind: str) -> None:  # DU-6
    secret = "abcd-efgh-1234/+ü"
    packed = base64.b64encode(f"{before}{secret}{behind}".encode()).decode()
    masked = TextMask.of_secrets([secret]).mask(f"Basic {packed} ")
    own = len(base64.b64encode(secret.encode()).decode().rstrip("="))
    assert masked.count("*") >= own - 3
    shown = "".join(letter if letter != "*" else "A" for letter in masked.removeprefix("Basic ").strip())
    assert not any(part in base64.b64decode(shown) for part in (b"abcd", b"efgh", b"1234"))


@pytest.mark.parametrize(
    "printed",
    ["tok en/1&2", "tok%20en/1%262", "tok%20en%2F1%262", "tok+en%2F1%262", "tok%20en%2f1%262", "tok en/1&amp;2"],
)
def test_a_secret_quoted_in_the_usual_ways_is_masked(printed: str) -> None:  # DU-6
    assert set(TextMask.of_secrets(["tok en/1&2\r\n"]).mask(printed)) == {"*"}
    assert set(TextMask.of_secrets(["tok en/1&2"]).mask(b"tok en/1&2".hex())) == {"*"}


@given(st.lists(st.text("ab", min_size=8, max_size=12), min_size=1, max_size=3), st.text("aaab\n", max_size=80))
def test_each_character_of_each_occurrence_is_masked_over_lines(texts: list[str], printed: str) -> None:
    joined, places = printed.replace("\n", ""), [at for at, letter in enumerate(printed) if letter != "\n"]
    hidden = {
        places[at + each]
        for text in texts
        for at in range(len(joined) - len(text) + 1)
        if joined.startswith(text, at)
        for each in range(len(text))
    }
    masked = TextMask(texts).mask(printed)
    if "\n" in printed:
        assert masked == "".join("*" if at in hidden else letter for at, letter in enumerate(printed))


def test_a_secret_that_repeats_itself_costs_no_more_than_another() -> None:  # SE-6
    """A log of repeated characters occurs at every byte; looking at the whole secret at each took a minute."""
    began = time.thread_time()
    masked = TextMask(["a" * 4096]).mask_bytes(b"a\n" * 131_072)
    assert masked == b"*\n" * 131_072
    assert time.thread_time() - began < 5
