"""The sources of conditions: documents that all servers share, each with its secret sealed.

Only the sources that the rules for an exception read are asked, all at once, each within its time. An answer is used
again while it is fresh, and so is a failure: a source that is away does not hold up every exception. What was read
is in the context that is kept with the decision, so a replay and a cornerstone read the same values."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import asdict, replace

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import ExceptionEvent
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.sources import CACHE_MS_MAX, TIMEOUT_MS_MAX, SourceSpec, SourceTrial, SourceView
from mendflow.core.model.values import Value, check_value
from mendflow.core.recovery.redaction import is_secret_name
from mendflow.core.rules.source_names import ANY_SOURCE, sources_read
from mendflow.services.base.contracts import Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.readable_documents import demand_readable, readable_in
from mendflow.services.base.sealing import Sealer
from mendflow.services.base.source_reader import PLACEHOLDER, SourceAway, SourceReader, SourceRequest
from mendflow.services.recovery.contexts import ReadSources
from mendflow.services.recovery.rules.store import RuleStore
from mendflow.stores.contract import Store

SOURCE_KIND: Final = "source"
SOURCES_MAX: Final = 200
SECRET_CHARS_MAX: Final = 1_000
VALUE_BYTES_MAX: Final = 2_000
"""A value is kept with every decision that reads it."""
VALUE_PARTS_MAX: Final = 200
ANSWERS_MAX: Final = 1_000


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A registered source; `spec` has its secret sealed."""

    spec: SourceSpec
    made_at: Instant
    made_by: str

    def view(self) -> SourceView:
        shown = {name: value for name, value in asdict(self.spec).items() if name != "secret"}
        return SourceView(**shown, has_secret=bool(self.spec.secret), made_at=self.made_at, made_by=self.made_by)


class Answer(NamedTuple):
    """A value, or the reason why there is none, and until when it is used again."""

    value: Value
    problem: str
    fresh_until: Instant


_decode = msgspec.json.Decoder(Source).decode


class SourceRegistry:
    def __init__(
        self, *, store: Store, ledger: Ledger, clock: Clock, sealer: Sealer, reader: SourceReader, rules: RuleStore
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._sealer = sealer
        self._reader = reader
        self._rules = rules
        self._sources: dict[str, Source] = {}
        self._answers: dict[tuple[str, Instant, str], Answer] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def start(self) -> None:
        """Read all sources; other servers may have registered and removed some."""
        found = await readable_in(self._store.scan(SOURCE_KIND), _decode)
        self._sources = {each.spec.name: each for _, each in found}

    # Registering

    async def all(self) -> list[SourceView]:
        await self.start()
        return [each.view() for _, each in sorted(self._sources.items())]

    async def put(self, wish: SourceSpec, *, who: str) -> SourceView:
        """Register a source; one of the same name is replaced."""
        self._check(wish)
        await self.start()
        if len(self._sources) >= SOURCES_MAX and wish.name not in self._sources:
            raise InvalidRequest(f"there are {SOURCES_MAX} sources already; remove some")
        sealed = await self._sealer.seal_text(wish.secret) if wish.secret else ""
        source = Source(spec=replace(wish, secret=sealed), made_at=self._clock.now(), made_by=who)
        known = await self._store.get(SOURCE_KIND, wish.name)
        demand_readable(known, _decode)
        version = known.version if known is not None else 0
        if await self._ledger.put_now(SOURCE_KIND, wish.name, source, version) is None:
            raise Conflict(f"source {wish.name} was changed by somebody else at the same time; look at it again")
        self._sources[wish.name] = source
        self._answers.clear()
        return source.view()

    async def remove(self, name: str) -> SourceView:
        found = await self._store.get(SOURCE_KIND, name)
        if found is None:
            raise NotFound(_unknown(name))
        for rules in self._rules.all():
            if name in sources_read(rules):
                raise Conflict(f"rules of {rules.name} read sources.{name}: change them first")
        await self._ledger.put_now(SOURCE_KIND, name, None, found.version)
        self._sources.pop(name, None)
        return _decode(found.body).view()

    def _check(self, wish: SourceSpec) -> None:
        if not wish.name.isidentifier() or not wish.name.isascii():
            raise InvalidRequest(
                f"{wish.name!r:.80} is not a name for a source; use letters, digits and _, a letter first", field="name"
            )
        if is_secret_name(wish.name):
            raise InvalidRequest(
                f"{wish.name} sounds like a secret, and decisions would hide its value; take another name", field="name"
            )
        if not 1 <= wish.timeout_ms <= TIMEOUT_MS_MAX:
            raise InvalidRequest(f"the time limit is between 1 ms and {TIMEOUT_MS_MAX // 1000} s", field="timeout_ms")
        if not 0 <= wish.cache_ms <= CACHE_MS_MAX:
            raise InvalidRequest("an answer is used again for at most a day", field="cache_ms")
        if len(wish.secret) > SECRET_CHARS_MAX:
            raise InvalidRequest(f"a secret has at most {SECRET_CHARS_MAX} characters", field="secret")
        if wish.value is not None and wish.away != "value":
            raise InvalidRequest("`value` is read when the source is away: say `away: value` too", field="value")
        if bool(wish.query) != (wish.kind == "sql"):
            raise InvalidRequest("an SQL source has a query, and no other source has one", field="query")
        if wish.kind == "file" and PLACEHOLDER.search(wish.address):
            raise InvalidRequest("the path of a file is fixed: it has no {...}", field="address")
        if problem := _too_large(wish.value):
            raise InvalidRequest(problem, field="value")
        self._reader.check(wish.kind, wish.address, wish.query)

    # Reading

    async def values(self, event: ExceptionEvent, context: Mapping[str, Value], project: str) -> ReadSources:
        """What the rules for this exception of a case of this project read."""
        names = self._rules.sources_read(event.type, event.flow, project)
        if not names:
            return ReadSources({}, {})
        wanted = sorted((names - {ANY_SOURCE}) | (set(self._sources) if ANY_SOURCE in names else set()))
        answers = await asyncio.gather(*(self._answer(name, context) for name in wanted))
        found = ReadSources({}, {})
        for name, answer in zip(wanted, answers, strict=True):
            source = self._sources.get(name)
            if not answer.problem:
                found.values[name] = answer.value
                continue
            found.away[name] = answer.problem
            if source is not None and source.spec.away == "value":
                found.values[name] = source.spec.value
        return found

    async def try_source(self, name: str, context: Mapping[str, Value]) -> SourceTrial:
        """Ask a source now, whatever was answered before."""
        await self.start()
        if name not in self._sources:
            raise NotFound(_unknown(name))
        began = self._clock.now()
        answer = await self._ask(self._sources[name], context)
        took_ms = self._clock.now() - began
        return SourceTrial(ok=not answer.problem, value=answer.value, message=answer.problem, took_ms=took_ms)

    def unknown(self, rules: RuleSet) -> list[str]:
        """The sources that a rule set reads and that nobody has registered."""
        return sorted(sources_read(rules) - {ANY_SOURCE, *self._sources})

    async def _answer(self, name: str, context: Mapping[str, Value]) -> Answer:
        source = self._sources.get(name)
        if source is None:
            return Answer(None, _unknown(name), 0)
        try:
            asked = msgspec.json.encode(parameters_of(source.spec, context)).decode()
        except SourceAway as error:
            return Answer(None, str(error), 0)
        key = (name, source.made_at, asked)
        async with self._locks.setdefault(name, asyncio.Lock()):  # many exceptions at once ask once
            known = self._answers.get(key)
            if known is None or known.fresh_until <= self._clock.now():
                known = await self._ask(source, context)
                if len(self._answers) >= ANSWERS_MAX:
                    self._answers.clear()
                self._answers[key] = known
        return known

    async def _ask(self, source: Source, context: Mapping[str, Value]) -> Answer:
        spec, value, problem = source.spec, None, ""
        try:
            request = SourceRequest(
                kind=spec.kind,
                address=spec.address,
                query=spec.query,
                secret=await self._sealer.open_text(spec.secret) if spec.secret else "",
                timeout_ms=spec.timeout_ms,
                parameters=parameters_of(spec, context),
            )
            async with asyncio.timeout(spec.timeout_ms / 1000):
                value = _selected(spec, await self._reader.read(request))
            problem = _too_large(value)
        except TimeoutError:
            problem = f"no answer within {spec.timeout_ms / 1000:g} s"
        except SourceAway as error:
            problem = str(error)
        except InvalidRequest as error:  # the server was started otherwise since it was registered
            problem = error.message
        return Answer(None if problem else value, problem, self._clock.now() + spec.cache_ms)


def parameters_of(spec: SourceSpec, context: Mapping[str, Value]) -> dict[str, Value]:
    """The values of the paths that stand in braces. Raises SourceAway if the exception has no such value."""
    found: dict[str, Value] = {}
    for path in _paths(spec.address, spec.query):
        value: Value = dict(context)
        for part in path.split("."):
            if not isinstance(value, dict) or part not in value:
                raise SourceAway(f"it is asked with {{{path}}}, which this exception does not have")
            value = value[part]
        if isinstance(value, dict | list):
            raise SourceAway(f"it is asked with {{{path}}}, which is no single value here")
        found[path] = value
    return found


def _paths(*texts: str) -> Iterable[str]:
    return dict.fromkeys(found[1] for text in texts for found in PLACEHOLDER.finditer(text))


def _selected(spec: SourceSpec, value: Value) -> Value:
    for part in spec.select.split(".") if spec.select else ():
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            raise SourceAway(f"its answer has no {spec.select}")
    return value


def _too_large(value: Value) -> str:
    if problem := check_value(value):
        return f"its answer cannot be used: {problem}"
    size = len(msgspec.json.encode(value))
    if size > VALUE_BYTES_MAX or (isinstance(value, dict | list) and len(value) > VALUE_PARTS_MAX):
        return f"its answer is larger than {VALUE_BYTES_MAX} bytes or {VALUE_PARTS_MAX} parts; `select` takes one part"
    return ""


def _unknown(name: str) -> str:
    return f"no source {name} is registered; `mendflow rules sources` lists them, `... sources add {name}` makes it"
