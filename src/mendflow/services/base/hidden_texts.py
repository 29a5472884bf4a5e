"""Texts that nobody is shown: tokens of this server, and of the pilots that it hears from, which a job of the same user
may be able to read on its machine, and print; and the secrets that this server has given to jobs, or that are in the
store: other servers give those to jobs whose logs are read here.

Tokens are masked wherever they are. The secrets of a project are masked in the logs and the faults of all jobs of that
project, and of no other: whoever sees what is masked could print guesses, and learn the secrets of others from the
stars. They are not masked in results: what people choose as a secret may be in results of others by chance, and pilots
mask the results of a job that has it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.secrets import MASKED_CHARS_MIN
from mendflow.core.model.text_masks import TextMask, forms_of

VALUES_MAX = 2
"""Of each secret: the newest, and the one before it, which running jobs may have."""
SECRETS_MAX = 1000
"""So many secrets of a project are known that are not in the store any more, or not yet: those that were used last."""
TOKENS_MAX = 1000
"""So many tokens of others are known, those that were told last: some issuers renew them every few minutes."""
LEARN_S = 2.0
"""So long what pilots report waits for a store that does not answer."""


class HiddenTexts:
    def __init__(self) -> None:
        self._own: tuple[str, ...] = ()
        self._used: dict[str, None] = {}  # the one that was told last is the last
        self._secrets: dict[str, dict[str, tuple[str, ...]]] = {}  # values by project and name, the newest last
        self._stored: frozenset[str] = frozenset()  # names of secrets that are not forgotten
        self._forgettable: dict[str, dict[str, None]] = {}  # names of the others by project, the one told last the last
        self._token_mask = TextMask()
        self._masks: dict[str, TextMask] = {}  # by project
        self._learn_stored: Callable[[], Awaitable[None]] | None = None
        self._has_learned: Callable[[], bool] = bool

    def learn_from(self, learn_stored: Callable[[], Awaitable[None]], has_learned: Callable[[], bool]) -> None:
        """The first adds the secrets in the store as they are now; the second says that it did so a moment ago."""
        self._learn_stored = learn_stored
        self._has_learned = has_learned

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

    def add_secret(self, project: str, name: str, value: str) -> None:
        """Mask the value that a secret of a project has from now on."""
        secrets, forgettable = self._secrets.setdefault(project, {}), self._forgettable.setdefault(project, {})
        values = secrets.pop(name, ())
        secrets[name] = (*(each for each in values if each != value), value)[-VALUES_MAX:]
        if name not in self._stored:
            forgettable.pop(name, None)
            forgettable[name] = None
        if secrets[name] == values:
            return
        while len(forgettable) > SECRETS_MAX:
            oldest = next(iter(forgettable))
            del forgettable[oldest], secrets[oldest]
        self._masks.pop(project, None)

    def keep_secrets(self, names: Iterable[str]) -> None:
        """These are in the store: they stay known, however many there are."""
        stored = frozenset(names)
        if stored != self._stored:
            self._stored = stored
            self._forgettable = {
                project: {name: None for name in secrets if name not in stored}
                for project, secrets in self._secrets.items()
            }

    async def current(self, project: str) -> TextMask:
        """What is masked in the logs of jobs of this project, also those secrets that other servers give them."""
        if self._learn_stored is not None:
            await self._learn_stored()
        return self.of(project)

    async def learn_soon(self) -> None:
        """Know the secrets in the store before texts of jobs are kept. A pilot is heard also while the store cannot be
        read."""
        if self._learn_stored is not None and not self._has_learned():
            with suppress(StoreUnavailable, TimeoutError):
                async with asyncio.timeout(LEARN_S):
                    await self._learn_stored()

    @property
    def _tokens(self) -> set[str]:
        return {*self._own, *self._used}

    def _make_masks(self) -> None:
        self._token_mask = TextMask(sorted(self._tokens, key=len, reverse=True))
        self._masks.clear()

    def of(self, project: str) -> TextMask:
        """What is masked in the logs and faults of jobs of this project."""
        if project not in self._secrets:
            return self._token_mask
        if (mask := self._masks.get(project)) is None:
            values = {value for each in self._secrets[project].values() for value in each}
            forms = {form for value in values if len(value.strip()) >= MASKED_CHARS_MIN for form in forms_of(value)}
            mask = self._masks[project] = TextMask(sorted({*self._tokens, *forms}, key=len, reverse=True))
        return mask

    def mask_outcome(self, outcome: Outcome, project: str) -> Outcome:
        """The outcome of a job with the end of its log and its fault as they may be shown, and its outputs without
        tokens."""
        if not self._own and not self._used and project not in self._secrets:
            return outcome
        return self._token_mask.mask_outcome(self.of(project).mask_texts(outcome))
