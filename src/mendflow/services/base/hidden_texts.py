"""Texts that nobody is shown: tokens of this server, and of the pilots that it hears from, which a job of the same user
may be able to read on its machine, and print; and the secrets that this server has given to jobs.

Tokens are masked wherever they are. Secrets are masked in the logs and the faults of all jobs, but not in results: what
people choose as a secret may be in results of others by chance, and pilots mask the results of a job that has it."""

from mendflow.core.model.jobs import Outcome
from mendflow.core.model.secrets import MASKED_CHARS_MIN
from mendflow.core.model.text_masks import TextMask, forms_of

VALUES_MAX = 2
"""Of each secret: the newest, and the one before it, which running jobs may have."""
SECRETS_MAX = 1000
"""So many secrets are known, those that were used last."""
TOKENS_MAX = 1000
"""So many tokens of others are known, those that were told last: some issuers renew them every few minutes."""


class HiddenTexts:
    def __init__(self) -> None:
        self._own: tuple[str, ...] = ()
        self._used: dict[str, None] = {}  # the one that was told last is the last
        self._secrets: dict[str, tuple[str, ...]] = {}  # their values by name, the newest last
        self._token_mask = TextMask()
        self._mask = TextMask()

    def add(self, *texts: str) -> None:
        """Mask the server's own tokens, which nobody has by chance."""
        if new := [text for text in texts if text and text not in self._own]:
            self._own = (*self._own, *dict.fromkeys(new))
            self._make_masks()

    def add_used(self, text: str) -> None:
        """Mask a token that somebody has used."""
        if not text:
            return
        known = text in self._used
        self._used.pop(text, None)
        self._used[text] = None
        if len(self._used) > TOKENS_MAX:
            del self._used[next(iter(self._used))]
        if not known:
            self._make_masks()

    def add_secret(self, name: str, value: str) -> None:
        """Mask the value that a secret has from now on."""
        values = self._secrets.pop(name, ())
        self._secrets[name] = (*(each for each in values if each != value), value)[-VALUES_MAX:]
        if self._secrets[name] == values:
            return
        while len(self._secrets) > SECRETS_MAX:
            del self._secrets[next(iter(self._secrets))]
        self._make_mask()

    @property
    def _tokens(self) -> set[str]:
        return {*self._own, *self._used}

    def _make_masks(self) -> None:
        self._token_mask = TextMask(sorted(self._tokens, key=len, reverse=True))
        self._make_mask()

    def _make_mask(self) -> None:
        values = {value for each in self._secrets.values() for value in each}
        forms = {form for value in values if len(value.strip()) >= MASKED_CHARS_MIN for form in forms_of(value)}
        self._mask = TextMask(sorted({*self._tokens, *forms}, key=len, reverse=True))

    def mask(self, text: str) -> str:
        return self._mask.mask(text)

    def mask_bytes(self, data: bytes) -> bytes:
        return self._mask.mask_bytes(data)

    def whole(self, data: bytes) -> int:
        """How many of these bytes there are without the beginning of a hidden text at their end."""
        return self._mask.whole(data)

    def mask_outcome(self, outcome: Outcome) -> Outcome:
        """The outcome with the end of its log and its fault as they may be shown, and its outputs without tokens."""
        return self._token_mask.mask_outcome(self._mask.mask_texts(outcome))
