"""Many texts are looked for together, and what is found is the same as of each alone."""

import hashlib
import time

from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.text_masks import TextMask
from mendflow.core.model.text_search import FEW, TextSearch

OTHERS = [hashlib.sha256(b"%d" % number).hexdigest().upper() for number in range(FEW)]
ALPHABET = st.sampled_from("ab\n")
LONG = st.integers(1, 20).map(lambda times: "ab" * 8 * times)
TEXTS = st.lists(
    st.one_of(st.text(ALPHABET, min_size=1, max_size=40), st.text("a", min_size=1), st.text("ab", min_size=7), LONG),
    max_size=12,
)
LINES = st.one_of(st.text("ab", min_size=3, max_size=300), st.integers(1, 150).map(lambda times: "ab" * times))


@given(TEXTS, st.text(ALPHABET, max_size=300))
def test_many_texts_are_found_wherever_they_are(texts: list[str], data: str) -> None:
    searched = [each.encode() for each in [*texts, *OTHERS]]
    found = TextSearch(searched).found(data.encode())
    assert found == [number for number, each in enumerate(searched) if each in data.encode()]


@given(TEXTS, LINES, st.integers(1, 30))
def test_of_many_texts_none_is_shown_whose_end_is_to_come(texts: list[str], data: str, width: int) -> None:
    for printed in (data, "\n".join(data[at : at + width] for at in range(0, len(data), width)), data + "\n"):
        alone = [TextMask([each]).whole(printed.encode()) for each in texts]
        assert TextMask([*texts, *OTHERS]).whole(printed.encode()) == min([len(printed), *alone])


def test_thousands_of_texts_are_masked_in_the_time_that_a_few_take() -> None:
    printed = b"".join(hashlib.sha512(b"%d" % number).hexdigest().encode() + b"\n" for number in range(2_000))
    few_s, many_s = (
        _fastest_s(TextMask([f"{number:030x}" for number in range(most)]), printed) for most in (24, 8_000)
    )
    assert many_s < 20 * few_s


def _fastest_s(mask: TextMask, printed: bytes) -> float:
    took = []
    for _ in range(4):
        begun = time.thread_time()
        mask.whole(mask.mask_bytes(printed))
        took.append(time.thread_time() - begun)
    return min(took)
