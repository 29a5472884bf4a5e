"""The text that CEL's library compiles: what expressions have beyond CEL, written with what the library has.

`a / b` becomes `a /b''/ b`. The library cannot be given another division of two integers; so dividing a number by the
mark puts it into a list, and the list is divided by functions of ours.

`list.sortBy(o, o.score)` becomes `list.map   (o, [o.score, o]).sortedByFirst()`: macros cannot be declared."""

from typing import Final, NamedTuple

from mendflow.core.expressions.scanner import CelToken, tokenize

MARK: Final = "b''/"
SORT_BY: Final = "sortBy"
SORTED: Final = "sortedByFirst"


class CelSource(NamedTuple):
    """A text for the library, and where what was inserted begins in it, with its length."""

    text: str
    inserted: tuple[tuple[int, int], ...] = ()

    def original_offset(self, offset: int) -> int:
        """Where a place in `text` was before anything was inserted."""
        return offset - sum(min(length, max(0, offset - start)) for start, length in self.inserted)


def cel_source(text: str) -> CelSource:
    if "/" not in text and SORT_BY not in text:
        return CelSource(text)
    tokens = tokenize(text)
    texts = [token.text for token in tokens]
    behind = dict[int, str]()  # what is inserted behind a token, by its place
    for place, token in enumerate(tokens):
        if (token.kind, token.text) == ("mark", "/"):
            # It binds to the left: what stands before it is divided by the mark, and that by what stands behind it.
            behind[place] = MARK
        elif token.text == SORT_BY:
            _sort_by(tokens, place, texts, behind)
    pieces: list[str] = []
    inserted: list[tuple[int, int]] = []
    length = 0
    for place, piece in enumerate(texts):
        pieces.append(piece)
        length += len(piece)
        if more := behind.get(place, ""):
            pieces.append(more)
            inserted.append((length, len(more)))
            length += len(more)
    return CelSource("".join(pieces), tuple(inserted))


def _sort_by(tokens: list[CelToken], place: int, texts: list[str], behind: dict[int, str]) -> None:
    solid = [at for at, token in enumerate(tokens) if token.kind != "space" and at > place]
    is_call = len(solid) > 2 and (tokens[solid[0]].text, tokens[solid[2]].text) == ("(", ",")
    end = _closing(tokens, solid[0]) if is_call and _is_member(tokens, place) else None
    if end is None:
        return
    texts[place] = "map".ljust(len(SORT_BY))
    behind[solid[2]] = "["
    behind[end - 1] = behind.get(end - 1, "") + f", {tokens[solid[1]].text}]"
    behind[end] = f".{SORTED}()" + behind.get(end, "")


def _is_member(tokens: list[CelToken], place: int) -> bool:
    before = [token for token in tokens[:place] if token.kind != "space"]
    return bool(before) and before[-1].text == "."


def _closing(tokens: list[CelToken], opening: int) -> int | None:
    depth = 0
    for at in range(opening, len(tokens)):
        if tokens[at].kind == "mark" and tokens[at].text in "([{":
            depth += 1
        elif tokens[at].kind == "mark" and tokens[at].text in ")]}":
            depth -= 1
            if not depth:
                return at
    return None
