"""Secrets: encrypted in the store, opened when a job that uses them is granted, and given to its pilot with the job.

A secret in the store is sealed with a key that is not in the store, so that nobody who can read the store, or a copy of
it, can read the secret. All servers on a store need the same key."""

import asyncio
import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.ids import Instant
from mendflow.core.model.jobs import Job
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.secrets import SecretView, secret_name_flaw, secret_value_flaw
from mendflow.services.base.contracts import TRIES, Clock
from mendflow.services.base.hidden_texts import HiddenTexts
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.projects import kept_project
from mendflow.services.base.sealing import Sealer
from mendflow.services.base.secret_sources import SecretSources
from mendflow.stores.contract import Store

JOB_SECRET_KIND: Final = "job-secret"
NONCE_BYTES: Final = 16
LEARNED_MS: Final = 1_000
"""For so long the secrets in the store are not looked at again to mask them."""


class StoredSecret(msgspec.Struct, frozen=True, kw_only=True):
    """A secret in the store. `key` says which key it was sealed with, without telling anything of the key."""

    name: str
    sealed: str
    key: str
    set_by: str
    set_at: Instant
    project: str = DEFAULT_PROJECT


_decode = msgspec.json.Decoder(StoredSecret).decode


class SecretUnavailable(Exception):
    """A secret cannot be given to a job; the message says which and why."""


class SecretService:
    """`used_by` says which deployed flows name a secret."""

    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        sources: SecretSources,
        hidden: HiddenTexts,
        used_by: Callable[[], dict[str, list[str]]],
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._sources = sources
        self._hidden = hidden
        self._used_by = used_by
        self._learned: dict[str, StoredSecret] = {}  # what was opened to be masked, by name
        self._learned_at: Instant | None = None
        self._learning = asyncio.Lock()
        hidden.learn_from(self.learn, self.has_learned)

    # For jobs

    async def values_for(self, job: Job) -> dict[str, str]:
        """The values of all secrets that the job uses, as they are now."""
        names = sorted({use.name for use in job.spec.secrets})
        kept = {found.id: _decode(found.body) for found in await self._store.get_many(JOB_SECRET_KIND, names)}
        return {name: await self._value(name, kept.get(name), job.spec.project) for name in names}

    def is_given(self, name: str) -> bool:
        """Whether the machine itself has such a secret."""
        return self._sources.find(name) is not None

    async def _value(self, name: str, kept: StoredSecret | None, project: str) -> str:
        """A secret is given to jobs of its own project only. Those of the machine belong to the default project, and
        there they come before what is stored."""
        found = self._sources.find(name)
        if found is not None and project == DEFAULT_PROJECT:
            if flaw := secret_value_flaw(found.value):
                raise SecretUnavailable(f"secret {name}, of {found.source}: {flaw}")
            self._hidden.add_secret(project, f"{name} of the machine", found.value)
            return found.value
        if kept is not None and kept.project == project:
            value = await self._opened(kept)
        elif kept is not None or found is not None:
            raise SecretUnavailable(f"project {project} has no secret {name}; an author of it sets one of another name")
        else:
            raise SecretUnavailable(
                f"there is no secret {name}; an administrator sets it with mendflow secrets set {name}"
            )
        self._hidden.add_secret(project, name, value)
        return value

    # For what is shown

    async def learn(self) -> None:
        """Have all secrets in the store masked, whichever server gives them to jobs. Those that cannot be opened here
        stay unknown."""
        async with self._learning:
            if self.has_learned():
                return
            now = self._clock.now()
            found = {each.id: each.body async for each in self._store.scan(JOB_SECRET_KIND)}
            self._hidden.keep_secrets(found)
            for body in found.values():
                with suppress(msgspec.DecodeError):
                    await self._learn(_decode(body))
            self._learned_at = now

    def has_learned(self) -> bool:
        """Whether it did so a moment ago."""
        return self._learned_at is not None and self._clock.now() - self._learned_at < LEARNED_MS

    async def _learn(self, kept: StoredSecret) -> None:
        if self._learned.get(kept.name) == kept:
            return
        with suppress(SecretUnavailable):
            self._hidden.add_secret(kept.project, kept.name, await self._opened(kept))
            self._learned[kept.name] = kept

    async def _opened(self, kept: StoredSecret) -> str:
        if problem := self._key_problem(kept):
            raise SecretUnavailable(problem)
        try:
            text = await self._sealer().open_text(kept.sealed)
        except InvalidRequest as error:  # somebody has changed the key just now
            raise SecretUnavailable(f"secret {kept.name} cannot be opened: {error.message}") from None
        try:
            return base64.b64decode(text, validate=True)[NONCE_BYTES:].decode()
        except ValueError:
            raise SecretUnavailable(f"secret {kept.name} in the store is damaged; set it again") from None

    def _key_problem(self, kept: StoredSecret) -> str:
        """Why a secret cannot be opened; this raises nothing, so that a bad key fails the jobs that need it and no
        other."""
        try:
            key = self._sources.key()
        except InvalidRequest as error:
            return f"secret {kept.name} cannot be opened: {error.message}"
        if not key:
            return f"secret {kept.name} cannot be opened: there is no key at {self._sources.key_place}; " + SAME_KEY
        if key_id(key) != kept.key:
            place = self._sources.key_place
            return f"secret {kept.name} cannot be opened: it was encrypted with another key than {place}; " + SAME_KEY
        return ""

    def _sealer(self) -> Sealer:
        async def key() -> str:
            return self._sources.key(create=True)

        return Sealer(key, key)

    # For people

    async def set(self, name: str, value: str, *, who: str, project: str = "") -> SecretView:
        """Set a secret. One that is there stays in its project; refused if that is another than the given one."""
        if flaw := secret_name_flaw(name):
            raise InvalidRequest(flaw, field="name")
        if flaw := secret_value_flaw(value):
            raise InvalidRequest(f"secret {name}: {flaw}", field="value")
        await self._demand_same_key()
        packed = base64.b64encode(secrets.token_bytes(NONCE_BYTES) + value.encode()).decode()
        sealed = await self._sealer().seal_text(packed)
        new = StoredSecret(
            name=name,
            sealed=sealed,
            key=key_id(self._sources.key()),
            set_by=who,
            set_at=self._clock.now(),
        )
        new = await self._put(new, project)
        self._hidden.add_secret(new.project, name, value)
        return self._view(new)

    async def _demand_same_key(self) -> None:
        """A second key would make two halves of the secrets, of which each server could open one."""
        own = self._sources.key()
        async for found in self._store.scan(JOB_SECRET_KIND):
            if not own or _decode(found.body).key != key_id(own):
                raise Conflict(f"the secrets of this store have another key than {self._sources.key_place}; {SAME_KEY}")

    async def _put(self, new: StoredSecret, project: str) -> StoredSecret:
        for _ in range(TRIES):
            found = await self._store.get(JOB_SECRET_KIND, new.name)
            version, stored = (found.version, _decode(found.body).project) if found is not None else (0, None)
            new = replace(new, project=kept_project(f"secret {new.name}", stored, project))
            if await self._ledger.put_now(JOB_SECRET_KIND, new.name, new, version) is not None:
                return new
        raise _changed_by_several(new.name)

    async def remove(self, name: str) -> SecretView:
        view = SecretView(name=name, used_by=self._used_by().get(name, []))
        for _ in range(TRIES):
            found = await self._store.get(JOB_SECRET_KIND, name)
            if found is None:
                raise NotFound(f"there is no secret {name!r:.100} in the store; `mendflow secrets` lists them")
            if await self._ledger.put_now(JOB_SECRET_KIND, name, None, found.version) is not None:
                return view
        raise _changed_by_several(name)

    async def all(self) -> list[SecretView]:
        used = self._used_by()
        kept = [_decode(found.body) async for found in self._store.scan(JOB_SECRET_KIND)]
        views = {(each.name, each.project): self._view(each, used) for each in kept}
        for name, source in self._sources.names().items():
            views[name, DEFAULT_PROJECT] = SecretView(name=name, source=source, used_by=used.get(name, []))
        for name, flows in used.items():
            if (name, DEFAULT_PROJECT) not in views and (found := self._sources.find(name)) is not None:
                views[name, DEFAULT_PROJECT] = SecretView(name=name, source=found.source, used_by=flows)
        return [views[place] for place in sorted(views)]

    def _view(self, kept: StoredSecret, used: dict[str, list[str]] | None = None) -> SecretView:
        flows = (self._used_by() if used is None else used).get(kept.name, [])
        return SecretView(
            name=kept.name,
            project=kept.project,
            set_by=kept.set_by,
            set_at=kept.set_at,
            used_by=flows,
            problem=self._key_problem(kept),
        )


SAME_KEY: Final = "give each server on the store the same file: mendflow serve --secrets-key FILE"


def _changed_by_several(name: str) -> Conflict:
    return Conflict(f"secret {name} is changed by several at once, again and again; try again")


def key_id(key: str) -> str:
    return hmac.new(key.encode(), b"which key this is", hashlib.sha256).hexdigest()[:16] if key else ""


def unavailable_fault(error: SecretUnavailable) -> Fault:
    """Why a job was not started."""
    return Fault(name="secretMissing", category=Category.INPUT, message=str(error), stage=AttemptStage.SUBMISSION)
