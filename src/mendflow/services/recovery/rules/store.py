"""The rule sets: every version of each as a document, the newest compiled and in memory.

A version never changes, so what a decision was made by can always be looked up. A new version is in force from the
moment it is put, for all cases, running ones included; exceptions that were reported before keep their decisions.
`types_by_flow` makes interception free where there are no rules: by flow, the types of exception that there are rules
for."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from mendflow.core.expressions.conditions import condition_flaw
from mendflow.core.expressions.work_budget import WORK
from mendflow.core.model.errors import BadRules, Conflict, NotFound
from mendflow.core.model.flow import Flow
from mendflow.core.model.principals import DEFAULT_PROJECT, Sight
from mendflow.core.model.repair import Conclusion, ExceptionType, RuleError
from mendflow.core.model.rules import DEFAULT_RULES, RuleSet
from mendflow.core.model.values import Value
from mendflow.core.rules import CompiledRules, RuleVerdict, compile_rules, context_lookup, demand_valid
from mendflow.core.rules.evaluation import holds_for_version
from mendflow.core.rules.source_names import explained_error
from mendflow.core.rules.validation import shape_problems
from mendflow.lazy import LazyModule
from mendflow.services.base.buckets import Bucket, BucketTable
from mendflow.services.base.contracts import TRIES, Clock
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.projects import kept_project
from mendflow.services.base.readable_documents import demand_readable, read_or_leave_out
from mendflow.services.base.visibility import in_sight
from mendflow.services.cases.flow_compiler import FlowCompiler
from mendflow.services.cases.flows import check_names
from mendflow.services.cases.intercepted_types import InterceptedTypes, RulesChanged
from mendflow.stores.contract import FieldCondition, Store, StoredDocument

if TYPE_CHECKING:
    from mendflow.core.recovery import exlet_checks
else:
    exlet_checks = LazyModule("mendflow.core.recovery.exlet_checks")


RULES_KIND: Final = "rules"
CONDITIONS_PER_SLICE: Final = 20
VERSION_KIND: Final = "rules-version"
UNITS_PER_S: Final = 50_000
UNITS_AT_ONCE: Final = 300_000
"""Work that the conditions of one project may do, as the budget of expressions counts it."""

_decode = msgspec.json.Decoder(RuleSet).decode


class StaleVersion(Conflict):
    """The set has changed since the change was prepared."""


def version_id(name: str, version: int) -> str:
    return f"{name}/{version:08}"


class RuleTypesByFlow(dict[str, InterceptedTypes]):
    """The types that a flow has rules for: in its own set and in the default rules. A flow without rules of its own has
    the default rules."""

    def __init__(
        self, default: frozenset[ExceptionType], flows: Iterable[tuple[str, frozenset[ExceptionType]]]
    ) -> None:
        super().__init__({flow: InterceptedTypes(types | default) for flow, types in flows})
        self._default = InterceptedTypes(default)

    def __missing__(self, flow: str) -> InterceptedTypes:
        return self._default


class RuleStore:
    """`shipped` are the rules that ship with the product: version 0 of the default rules, until somebody changes them.
    `shared`: other servers may change rules as well. `sealed` gives a flow without passwords in the clear.
    `project_of_flow` is that of a deployed flow."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        hub: Hub,
        sealed: Callable[[Flow], Awaitable[Flow]],
        shipped: RuleSet | None = None,
        *,
        compiler: FlowCompiler,
        shared: bool = False,
        project_of_flow: Callable[[str], str | None] = lambda _flow: None,
    ) -> None:
        self._project_of_flow = project_of_flow
        self.compiler = compiler
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._sealed = sealed
        self._shipped = (
            replace(shipped, name=DEFAULT_RULES, version=0) if shipped is not None else RuleSet(name=DEFAULT_RULES)
        )
        self._sets: dict[str, CompiledRules] = {DEFAULT_RULES: compile_rules(self._shipped)}
        self._read: dict[str, int] = {}  # the versions of the documents that the sets were read from
        self.shared = shared
        self._hub = hub
        self.types_by_flow = RuleTypesByFlow(frozenset(), ())
        self._paces = BucketTable(lambda now: Bucket(UNITS_PER_S, UNITS_AT_ONCE, now))  # by project
        self._refresh_types()

    async def start(self) -> None:
        """Load the newest version of each set, again where other servers may have changed it."""
        for found in [each async for each in self._store.scan(RULES_KIND)]:
            await self._take(found)
        self._refresh_types()

    async def refresh(self, flow: str) -> None:
        """Before something is decided, where other servers may have changed rules: load newer versions."""
        newer = [
            each
            for each in await self._store.get_many(RULES_KIND, [flow, DEFAULT_RULES])
            if self._read.get(each.id) != each.version
        ]
        for found in newer:
            await self._take(found)
        if newer:
            self._refresh_types()

    async def _take(self, found: StoredDocument) -> None:
        if self._read.get(found.id, 0) > found.version:
            return
        self._read[found.id] = found.version
        rules = read_or_leave_out(found, _decode, "import the rules again with mendflow rules import")
        if rules is not None:
            self._sets[found.id] = compile_rules(rules)
            await self._complete(rules)

    async def _complete(self, newest: RuleSet) -> None:
        """The newest version is written before it is listed among all versions: a crash may be in between."""
        id = version_id(newest.name, newest.version)
        if await self._store.get(VERSION_KIND, id) is None:
            await self._ledger.put_now(VERSION_KIND, id, newest, 0)

    def _refresh_types(self) -> None:
        types = {name: types_of(each.rule_set) for name, each in self._sets.items()}
        default = types.pop(DEFAULT_RULES)
        self.types_by_flow = RuleTypesByFlow(default, types.items())
        self._hub.publish(RulesChanged(self.types_by_flow))

    # Conclusions

    async def judge(
        self,
        type: ExceptionType,
        flow: str,
        task: str,
        context: dict[str, Value],
        *,
        project: str,
        own_only: bool = False,
    ) -> RuleVerdict:
        """What the flow's rules conclude, else the default rules, about a case of this project. Rules on trial are
        evaluated in both. Projects about whose cases conditions have done much work of late wait, so that others need
        not."""
        pace = self._paces.of(project, self._clock.now() / 1000)
        while wait_s := pace.wait_s(0, self._clock.now() / 1000):
            await self._clock.sleep(math.ceil(wait_s * 1000))
        before = WORK.spent_in_all
        try:
            return self._judged(type, flow, task, context, project, own_only=own_only)
        finally:
            pace.take(WORK.spent_in_all - before)

    def _judged(
        self, type: ExceptionType, flow: str, task: str, context: dict[str, Value], project: str, *, own_only: bool
    ) -> RuleVerdict:
        lookup, trials, errors = context_lookup(context), list[Conclusion](), tuple[RuleError, ...]()
        for found in self._sets_for(flow, project, own_only=own_only):
            if not holds_for_version(found.rule_set, context):
                continue
            verdict = found.judge(type, task, lookup)
            trials += verdict.trials
            errors += tuple(explained_error(each, context) for each in verdict.errors)
            if verdict.conclusion is not None:
                return RuleVerdict(verdict.conclusion, trials, errors)
        return RuleVerdict(None, trials, errors)

    def _sets_for(self, flow: str, project: str, *, own_only: bool = False) -> list[CompiledRules]:
        """The rules for a case of this project: the flow's own, and the default rules. Whoever starts a case, or tells
        of one, names its flow: a flow of the same name in another project is another."""
        names = [flow] if flow != DEFAULT_RULES and self._is_in(flow, project) else []
        names += [] if own_only else [DEFAULT_RULES]
        return [self._sets[name] for name in names if name in self._sets]

    def _is_in(self, name: str, project: str) -> bool:
        return name == DEFAULT_RULES or self.project_of(name) in (None, project)

    def are_of(self, name: str, project: str) -> bool:
        """Whether rules of this name are the default rules, or the project's; those of a free name are those of the
        default one."""
        return name == DEFAULT_RULES or (self.project_of(name) or DEFAULT_PROJECT) == project

    def project_of(self, name: str) -> str | None:
        """The project that the name of a flow, or of its rules, is taken in; None if it is free."""
        found = self._sets.get(name)
        return self._project_of_flow(name) or (found.rule_set.project if found is not None else None)

    def sources_read(self, type: ExceptionType, flow: str, project: str) -> frozenset[str]:
        """The sources that the rules for such an exception of a case of this project read."""
        sets = self._sets_for(flow, project)
        return frozenset().union(*(each.sources_read(type) for each in sets if type in each.rule_set.trees))

    def has_rules(self, type: ExceptionType, flow: str) -> bool:
        return type in self.types_by_flow[flow]

    async def exlet(self, conclusion: Conclusion) -> Flow | None:
        """The exlet that was concluded, from that version of the set; None if the set does not have it."""
        newest = self._sets.get(conclusion.rules)
        if newest is not None and newest.rule_set.version == conclusion.version:
            return newest.rule_set.exlets.get(conclusion.exlet)
        return (await self.version(conclusion.rules, conclusion.version)).exlets.get(conclusion.exlet)

    # Looking

    def all(self) -> list[RuleSet]:
        return [each.rule_set for _, each in sorted(self._sets.items())]

    def newest(self, name: str) -> RuleSet:
        """The refusal does not name the others: they may be of other projects."""
        found = self._sets.get(name)
        if found is None:
            raise NotFound(
                f"flow {name!r} has no rules here; `mendflow rules` lists those that are there, and `mendflow rules"
                " add` makes some"
            )
        return found.rule_set

    def newest_or_empty(self, name: str) -> RuleSet:
        found = self._sets.get(name)
        return found.rule_set if found is not None else RuleSet(name=name)

    def newest_for(self, flow: str, project: str) -> RuleSet:
        """The rules of a flow for a case of this project; empty if there are none, or if those of that name are another
        project's."""
        found = self._sets.get(flow) if self._is_in(flow, project) else None
        return found.rule_set if found is not None else RuleSet(name=flow, project=project)

    def asked_about(self, name: str, sight: Sight) -> list[FieldCondition]:
        """Which past decisions the rules of this name may be asked about, of those in sight: about cases of a flow of
        their project. The default rules are asked about all."""
        if name == DEFAULT_RULES:
            return in_sight(sight)
        owner = self.project_of(name)
        own = [] if owner is None else in_sight(Sight(frozenset({owner})))
        return [FieldCondition("flow", name), *own, *in_sight(sight)]

    def demand_in(self, name: str, project: str) -> None:
        """Refuse to teach rules of another project than the case that they are taught by."""
        if name != DEFAULT_RULES:
            kept_project(f"rule set {name!r}", self.project_of(name), project)

    async def version(self, name: str, version: int) -> RuleSet:
        newest = self._sets.get(name)
        if newest is not None and newest.rule_set.version == version:
            return newest.rule_set
        if name == DEFAULT_RULES and version == 0:
            return self._shipped
        await self._ledger.settled()
        found = await self._store.get(VERSION_KIND, version_id(name, version))
        if found is None:
            raise NotFound(f"rule set {name!r} has no version {version}; `mendflow rules history` lists them")
        return _decode(found.body)

    async def versions(self, name: str) -> list[RuleSet]:
        """Every version, the newest first."""
        await self._ledger.settled()
        found = [_decode(each.body) async for each in self._store.scan(VERSION_KIND, f"{name}/")]
        found = [each for each in found if each.name == name]
        shipped = [self._shipped] if name == DEFAULT_RULES else []
        if not found and not shipped:
            self.newest(name)
        return [*reversed(found), *shipped]

    # Changing

    async def put(
        self, rules: RuleSet, *, author: str = "", note: str = "", expected: int | None = None, project: str = ""
    ) -> RuleSet:
        """Make this the next version of the set, in force at once. Refused if anything in it is wrong, if the newest
        version is not the expected one, or if a project is given and the set is in another."""
        await check_conditions(rules)
        await self.demand_valid_rules(rules)
        rules = replace(rules, exlets={name: await self._sealed(exlet) for name, exlet in rules.exlets.items()})
        name = rules.name
        for _ in range(TRIES):
            if self.shared:
                await self.refresh(name)
            newest = self.newest_or_empty(name)
            if expected is not None:  # it is a change of what is there
                demand_readable(await self._store.get(RULES_KIND, name), _decode)
            if expected is not None and newest.version != expected:
                raise StaleVersion(
                    f"rule set {name!r} is at version {newest.version}, not {expected}; look at it again"
                )
            stored = self._project_of_flow(name) or (newest.project if newest.version else None)
            stays_in = kept_project(f"rule set {name!r}", stored, project or stored or rules.project)
            made = replace(
                rules,
                version=newest.version + 1,
                author=author or rules.author,
                note=note or rules.note,
                at=self._clock.now(),
                project=stays_in,
            )
            if await self._put(made):
                return made
            await self.refresh(name)
        raise Conflict(f"rule set {name!r} is changed by several at once, again and again; put it once more")

    async def _put(self, made: RuleSet) -> bool:
        """Whether no other server was faster."""
        version = await self._ledger.put_now(RULES_KIND, made.name, made, self._read.get(made.name, 0))
        if version is None:
            return False
        if self._read.get(made.name, 0) < version:
            self._sets[made.name], self._read[made.name] = compile_rules(made), version
            self._refresh_types()
        await self._ledger.put_now(VERSION_KIND, version_id(made.name, made.version), made, 0)
        return True

    async def demand_valid_rules(self, rules: RuleSet) -> None:
        demand_valid(rules)
        for exlet in rules.exlets.values():
            check_names(exlet)
            await self.compiler.check(exlet)
        if problems := exlet_checks.rule_set_problems(rules):
            raise BadRules(problems=problems)

    async def restore(self, name: str, version: int, *, author: str = "") -> RuleSet:
        """Make an earlier version the next one."""
        wanted = await self.version(name, version)
        return await self.put(wanted, author=author, note=f"version {version} again")


async def check_conditions(rules: RuleSet) -> None:
    """Check conditions a few at a time, so that other requests are served in between. Results are cached for the
    complete check; an invalid tree is refused before that."""
    trees = [tree for trees in rules.trees.values() for tree in trees.values()]
    if any(shape_problems(tree) for tree in trees):
        return
    conditions = [rule.condition for tree in trees for rule in tree.rules.values()]
    for number, condition in enumerate(conditions, 1):
        condition_flaw(condition)
        if number % CONDITIONS_PER_SLICE == 0:
            await asyncio.sleep(0)


def types_of(rules: RuleSet) -> frozenset[ExceptionType]:
    return frozenset(type for type, trees in rules.trees.items() if any(tree.rules for tree in trees.values()))
