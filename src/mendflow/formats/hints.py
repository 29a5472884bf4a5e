"""Words that people bring from other tools, and how the same is said in a flow file.

In a table the words of each hint stand side by side. Capitals, `-` and `_` do not matter: `maxRetries`, `max-retries`
and `max_retries` are one word."""

import re

Hints = dict[str, str]


def plain(word: str) -> str:
    """The word without capitals, `-` and `_`."""
    return re.sub(r"[^a-z0-9]", "", word.lower())


def hints(*groups: tuple[str, str]) -> Hints:
    """A table of hints: the words of each group, and the sentence that answers them."""
    return {plain(word): sentence for words, sentence in groups for word in words.split()}


def hint_for(word: str, table: Hints) -> str:
    return table.get(plain(word), "")


def with_hint(message: str, word: str, table: Hints) -> str:
    """The message, and how it is said here, if that is known."""
    hint = hint_for(word, table)
    return f"{message}; {hint}" if hint else message
