"""Makes proposals from the counts: reads the samples of the causes that have changed, asks the core for suggestions,
and tries each on the past."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.learning.context_trees import Context
from mendflow.core.learning.exlet_changes import change_of_exlet, is_same_again
from mendflow.core.learning.group_statistics import GroupStatistics, count_failure, empty_group
from mendflow.core.learning.rates import rate_of
from mendflow.core.learning.repair_suggestions import History, KnownExlet, Suggestion, Verdict
from mendflow.core.learning.suggestions import suggestions
from mendflow.core.learning.usage import PlaceCount, UsageStatistics, day_of
from mendflow.core.model.errors import RequestError
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import Instant
from mendflow.core.model.learning import LearningSettings, Proposal, ProposalEvidence, ProposalKind, ProposalTrial
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.core.model.rules import ALL_TASKS, DEFAULT_RULES, RuleSet
from mendflow.core.recovery.patterns import exlet_of
from mendflow.core.rules import CompiledRules, Draft, add_rule, context_lookup, tree_for, try_rule
from mendflow.core.rules.revision import is_out_of_use
from mendflow.services.base.readable_documents import readable
from mendflow.services.learning.learned_failures import decode_decided, learned_failure
from mendflow.services.learning.proposal_store import CLOSED_STATES, has_grown, proposal_place
from mendflow.services.recovery.decisions import DECISION_KIND, OPEN_DECISION_KIND
from mendflow.services.recovery.proxy.patterns import PatternStore
from mendflow.services.recovery.rules.store import RuleStore
from mendflow.stores.contract import Store

SAMPLES_READ: Final = 40
SAMPLES_READ_BESIDE: Final = 4
GROUPS_READ_MAX: Final = 200
WAITING_READ_MAX: Final = 500
PLACE_DAYS: Final = 14
IDS_SHOWN: Final = 20
HANDLED_STATES: Final = frozenset({"on-trial", *CLOSED_STATES})

_decode = msgspec.json.Decoder(Decision).decode


class ProposalMaker:
    def __init__(self, store: Store, rules: RuleStore, patterns: PatternStore) -> None:
        self._store = store
        self._rules = rules
        self._patterns = patterns

    def is_same_again(self, rules: str, exlet: str) -> bool:
        """Whether an exlet changes nothing of a job but the time."""
        known = self._rules.newest_or_empty(rules).exlets.get(exlet)
        known = known or self._rules.newest_or_empty(DEFAULT_RULES).exlets.get(exlet)
        return known is not None and is_same_again(change_of_exlet(known))

    async def with_waiting(self, groups: Sequence[GroupStatistics]) -> list[GroupStatistics]:
        """The counts, with failures that wait for a person: nobody has taken them up so far."""
        found = {each.id: each for each in groups}
        waiting = [each.id async for each in self._store.scan(OPEN_DECISION_KIND)][:WAITING_READ_MAX]
        for decided in readable(await self._store.get_many(DECISION_KIND, waiting), decode_decided):
            failure = learned_failure(decided, self.is_same_again) if decided.state == "waiting" else None
            if failure is not None:
                count_failure(found.setdefault(failure.group, empty_group(failure)), failure)
        return list(found.values())

    async def make(
        self,
        groups: Sequence[GroupStatistics],
        changed: Iterable[str],
        usage: Sequence[UsageStatistics],
        known: dict[str, Proposal],
        settings: LearningSettings,
        now: Instant,
    ) -> list[Proposal]:
        """What is to be proposed for the causes that have changed."""
        newest = sorted(groups, key=lambda each: -each.last_at)[:GROUPS_READ_MAX]
        fresh = frozenset(changed) & {each.id for each in newest}
        decisions = await self._read_samples(newest, fresh)
        failures = {each.id: each.count for each in groups}
        history = History(
            groups=newest,
            decisions=decisions,
            judge=self._judge,
            exlets=self._known_exlets,
            cornerstones=self._cornerstones,
            conflicts=lambda said, decision: bool(self._conflict(said, decision)),
            is_blocked=lambda kind, subject, exlet: is_blocked(known, kind, subject, exlet, failures),
            changed=fresh,
            hosts=_places(usage, "hosts", now),
            sites=_places(usage, "sites", now),
            settings=settings,
        )
        told = (
            each for each in suggestions(history) if self._rules.are_of(each.rules, decisions[each.decision].project)
        )
        return [self._proposal(each, history, known, failures, now) for each in told]

    async def _read_samples(self, groups: Sequence[GroupStatistics], fresh: frozenset[str]) -> dict[str, Decision]:
        """Of the causes that have changed many, of the others a few, to tell them apart."""
        wanted: list[str] = []
        for group in groups:
            most = SAMPLES_READ if group.id in fresh else SAMPLES_READ_BESIDE
            wanted += [each.id for each in sorted(group.samples, key=lambda each: -each.at)[:most]]
        found = await self._store.get_many(DECISION_KIND, list(dict.fromkeys(wanted)))
        return {each.id: _decode(each.body) for each in found}

    def _judge(self, decision: Decision) -> Verdict:
        """What the rules say of a failure now. A rule that holds and concludes nothing was made so on purpose, unless
        it is a root that always holds."""
        settled = False
        for name in (decision.flow, DEFAULT_RULES):
            rules = CompiledRules(self._rules.newest_for(name, decision.project))
            tree = rules.tree_for(decision.type, decision.task)
            if tree is None:
                continue
            lookup = context_lookup(decision.context)
            said = rules.judge(decision.type, decision.task, lookup).conclusion
            if said is not None:
                return Verdict(said, True)
            decided = rules.walk_tree(decision.type, tree, lookup).decided
            settled = settled or (decided is not None and decided.rule.condition.strip() != "true")
        return Verdict(None, settled)

    def _known_exlets(self, name: str) -> Sequence[KnownExlet]:
        """Those of the rule set, of the default rules, and the repair patterns; the first of a name counts."""
        found: dict[str, Flow] = {}
        for rules in dict.fromkeys((name, DEFAULT_RULES)):
            for exlet, flow in self._rules.newest_or_empty(rules).exlets.items():
                found.setdefault(exlet, flow)
        for pattern in self._patterns.patterns.repairs:
            found.setdefault(pattern.name, exlet_of(pattern))
        return [KnownExlet(exlet, change_of_exlet(flow), flow) for exlet, flow in found.items()]

    def _cornerstones(self, name: str) -> Sequence[Context]:
        trees = self._rules.newest_or_empty(name).trees.get(ExceptionType.ABORT, {})
        return [
            rule.cornerstone
            for tree in trees.values()
            for rule in tree.rules.values()
            if rule.cornerstone is not None and not is_out_of_use(rule) and rule.exlet
        ]

    def _conflict(self, said: Suggestion, decision: Decision) -> str:
        """Why the rule could not be in force: which cornerstone it would change."""
        rules = self._rules.newest_or_empty(said.rules)
        try:
            add_rule(rules, said.type, _tree_of(said, rules, decision), decision.context, _draft(said, rules))
        except RequestError as error:
            return error.message
        return ""

    def _proposal(
        self,
        said: Suggestion,
        history: History,
        known: dict[str, Proposal],
        failures: Mapping[str, int],
        now: Instant,
    ) -> Proposal:
        group = said.group
        subject = said.place or (group.id if group is not None else "")
        decision = history.decisions[said.decision]
        rules = self._rules.newest_or_empty(said.rules)
        task = _tree_of(said, rules, decision)
        breaks = self._conflict(said, decision) if said.kind != "retire" else ""
        place = proposal_place(known, said.kind, subject, said.exlet, failures.get(subject, 0))
        return Proposal(
            id=place.id,
            kind=said.kind,
            state="open",
            at=now,
            sentence=said.sentence,
            rules=said.rules,
            type=said.type,
            task=task,
            condition=said.condition,
            exlet=said.exlet,
            flow=said.flow if said.exlet and said.exlet not in rules.exlets else None,
            evidence=msgspec.structs.replace(_evidence(said, history, rules, task, decision), breaks=breaks),
            group=group.id if group is not None else "",
            message=group.message if group is not None else said.place,
            rule=said.rule,
            decision=said.decision,
            cornerstone=decision.context,
            again=_again(place.after, failures.get(subject, 0)) if place.after is not None else "",
        )

    def is_rule_retired(self, proposal: Proposal) -> bool:
        """Whether the rule of an adopted proposal is out of use, or gone with a version that was taken back. Another
        server may have adopted it in a version that has not come here yet."""
        newest = self._rules.newest_or_empty(proposal.rules)
        if proposal.version > newest.version:
            return False
        tree = newest.trees.get(proposal.type, {}).get(proposal.task)
        rule = tree.rules.get(proposal.rule) if tree is not None and proposal.rule is not None else None
        return rule is None or is_out_of_use(rule)


def _again(closed: Proposal, failures: int) -> str:
    """What became of the same proposal before, and what has changed since."""
    if closed.state == "dismissed":
        by = f" by {closed.dismissed_by}" if closed.dismissed_by else ""
        before = f"it was dismissed{by} ({closed.why})"
    else:
        before = f"its rule {closed.rule} of {closed.rules} was retired"
    then = closed.closed_failures or closed.evidence.failures
    return f"proposed again: {before} after {then} failures, and there have been {failures} since the first one"


def _tree_of(said: Suggestion, rules: RuleSet, decision: Decision) -> str:
    """The tree that decides about the failure now; that of all tasks, if there is none."""
    return said.task if said.task != ALL_TASKS else (tree_for(rules, said.type, decision.task) or ALL_TASKS)


def _draft(said: Suggestion, rules: RuleSet) -> Draft:
    steps = said.flow if said.exlet and said.exlet not in rules.exlets else None
    return Draft(condition=said.condition, exlet=said.exlet, steps=steps)


def is_blocked(
    known: dict[str, Proposal], kind: ProposalKind, subject: str, exlet: str, failures: Mapping[str, int]
) -> bool:
    """Whether the same was adopted, dismissed or retired; `*`: whether a repair for the subject is on trial."""
    if exlet == "*":
        return any(each.group == subject and each.state == "on-trial" for each in known.values())
    number = failures.get(subject, 0)
    if exlet and any(
        each.group == subject and each.exlet == exlet and each.state in CLOSED_STATES and not has_grown(each, number)
        for each in known.values()
    ):
        return True  # also as a proposal of another kind
    found = known.get(proposal_place(known, kind, subject, exlet, number).id)
    return found is not None and found.state in HANDLED_STATES


def _places(usage: Sequence[UsageStatistics], which: str, now: Instant) -> dict[str, PlaceCount]:
    found: dict[str, PlaceCount] = {}
    for each in usage:
        if each.day < day_of(now) - PLACE_DAYS:
            continue
        counted: dict[str, PlaceCount] = getattr(each, which)
        for name, place in counted.items():
            total = found.setdefault(name, PlaceCount())
            total.attempts += place.attempts
            total.failed += place.failed
    return found


def _evidence(said: Suggestion, history: History, rules: RuleSet, task: str, decision: Decision) -> ProposalEvidence:
    group = said.group
    is_for_all = rules.name == DEFAULT_RULES  # else it is for those who see the flow, and tells of nothing but the flow
    own = (rules.name, decision.project)
    asked = (each for each in history.decisions.values() if is_for_all or (each.flow, each.project) == own)
    past = sorted(asked, key=lambda each: -each.at)
    members = [each for each in past if each.id in said.members]
    found = ProposalEvidence(
        failures=group.count if group is not None else len(members),
        cases=len({each.case for each in members}),
        first_at=group.first_at if group is not None else min(each.at for each in members),
        last_at=group.last_at if group is not None else max(each.at for each in members),
        flows=list(group.flows) if group is not None and is_for_all else sorted({each.flow for each in members}),
        similar=list(said.similar),
        sure=rate_of(*said.sure),
    )
    if said.kind == "retire":
        return msgspec.structs.replace(found, caught=len(members), of=len(members), caught_ids=_ids(members))
    try:
        tried = try_rule(rules, said.type, task, _draft(said, rules), past, decision.context)
    except RequestError:
        return found
    caught = [id for id in (*tried.caught, *tried.same, *tried.otherwise) if id in said.members]
    by_id = {each.id: each for each in past}
    spoilt = [id for id in tried.otherwise if by_id[id].result == "recovered" and id not in said.members]
    return msgspec.structs.replace(
        found,
        caught=len(caught),
        of=len(members),
        caught_ids=caught[:IDS_SHOWN],
        spoilt=len(spoilt),
        spoilt_ids=spoilt[:IDS_SHOWN],
    )


def _ids(decisions: Sequence[Decision]) -> list[str]:
    return [each.id for each in decisions[:IDS_SHOWN]]


def agreement_of(proposal: Proposal, groups: Iterable[GroupStatistics]) -> ProposalTrial:
    """What the rule of an adopted proposal would have done on trial, beside what was done."""
    key = (proposal.rules, proposal.task, proposal.rule, proposal.exlet)
    counts = [count for group in groups for count in group.trials if count.key == key]
    return ProposalTrial(
        fired=sum(count.fired for count in counts),
        agreed=sum(count.agreed for count in counts),
        otherwise=sum(count.otherwise for count in counts),
        otherwise_ids=[id for count in counts for id in count.otherwise_ids][-IDS_SHOWN:],
    )
