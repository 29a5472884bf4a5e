"""Texts that nobody is shown: tokens of this server, and of the pilots that it hears from, which a job of the same user
may be able to read on its machine, and print; and the secrets that this server has given to jobs.

Tokens are masked wherever they are. The secrets of a project are masked in the logs and the faults of all jobs of that
project, and of no other: whoever sees what is masked could print guesses, and learn the secrets of others from the
stars. They are not masked in results: what people choose as a secret may be in results of others by chance, and pilots
mask the results of a job that has it."""

from mendflow.core.model.jobs import Outcome
from mendflow.core.model.secrets import MASKED_CHARS_MIN
from mendflow.core.model.text_masks import TextMask, forms_of

VALUES_MAX = 2
"""Of each secret: the newest, and the one before it, which running jobs may have."""
SECRETS_MAX = 1000
"""So many secrets of a project are known, those that were used last."""
TOKENS_MAX = 1000
"""So many tokens of others are known, those that were told last: some issuers renew them every few minutes."""


class HiddenTexts:
    def __init__(self) -> None:
        self._own: tuple[str, ...] = ()
        self._used: dict[str, None] = {}  # the one that was told last is the last
        self._secrets: dict[str, dict[str, tuple[str, ...]]] = {}  # values by project and name, the newest last
        self._token_mask = TextMask()
        self._masks: dict[str, TextMask] = {}  # by project

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
        secrets = self._secrets.setdefault(project, {})
        values = secrets.pop(name, ())
        secrets[name] = (*(each for each in values if each != value), value)[-VALUES_MAX:]
        if secrets[name] == values:
            return
        while len(secrets) > SECRETS_MAX:
            del secrets[next(iter(secrets))]
        self._masks.pop(project, None)

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
