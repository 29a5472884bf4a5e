"""What an alert says of a failure: a long message ends at a word, and shows that there is more."""

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.services.recovery.failures import MESSAGE_CHARS_MAX, unhandled_finding

LONG = "the file is not whole; put it right with mendflow data fetch --from archive" + " --part trt_2" * 30


def sentence_about(message: str) -> str:
    fault = Fault(name="exitCode", category=Category.JOB, message=message)
    decision = Decision(
        id="f-1/1",
        case=CaseId("f-1"),
        flow="f",
        type=ExceptionType.ABORT,
        at=0,
        state="ignored",
        item=ItemId("a"),
        fault=fault,
    )
    finding = unhandled_finding(decision)
    assert finding is not None
    return finding.sentence


@pytest.mark.parametrize("message", [LONG, LONG[:MESSAGE_CHARS_MAX] + "x", "x" * 400])
def test_a_long_message_is_not_cut_in_a_word_and_shows_that_there_is_more(message: str) -> None:  # JS-5
    shown, dots, _ = sentence_about(message).partition(" took it up: ")[2].partition(" ... See `mendflow why f-1:a`")
    assert dots and message.startswith(shown) and len(shown) <= MESSAGE_CHARS_MAX
    assert " " not in message or message[len(shown)] == " ", "it ends at a word"


def test_a_message_that_fits_is_shown_whole() -> None:  # JS-5
    assert "took it up: it ended. See `mendflow why f-1:a`" in sentence_about("it ended")
    assert f"{'x' * MESSAGE_CHARS_MAX}. See" in sentence_about("x" * MESSAGE_CHARS_MAX)
