"""A case drawn as its flow, with how far each part of it is.

The flow is the one that the case was started with; the numbers are the counts that the case keeps anyway, so the cost
is that of the flow and not of the items. Cases that it called are counted in the flow that is drawn inside the call,
and what the exception service ran is drawn beside what failed. Where the flow is not known, as of another engine's
case, the names of the items are the nodes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.engine import live_items
from mendflow.core.engine.messages import Deliver, Event
from mendflow.core.graphs.flow_graph import FlowGraph, draw_flow, with_prefix
from mendflow.core.model.errors import NotFound
from mendflow.core.model.flow import Flow
from mendflow.core.model.graphs import GraphEdge, GraphMessage, GraphNode, GraphView
from mendflow.core.model.ids import CaseId, ItemId, item_name
from mendflow.core.model.jobs import Job
from mendflow.core.model.repair import RETRYING, Decision
from mendflow.core.model.views import CaseView, ItemView, NameCount
from mendflow.services.base.cluster import CASE_KIND, JOB_KIND
from mendflow.services.cases.live_case import ITEM_KIND, CaseDocument, ItemDocument, LiveCase, journal_of
from mendflow.services.runtime.server import Runtime
from mendflow.stores.contract import FieldCondition, Store

SAMPLE: Final = 5
JOBS_LOOKED_AT: Final = 50
CALLED_READ: Final = 2_000
NOTES_READ: Final = 5_000
EVENTS_READ: Final = 5_000
MESSAGES_SHOWN: Final = 200
EXLET_CASES: Final = 3
EXLET: Final = "exlet"
MESSAGE_KINDS: Final = frozenset({"receive", "invoke", "pick", "reply"})
STATES: Final = {"done": "completed", **{each: each for each in ("running", "waiting", "failed", "cancelled")}}
STATES_MORE: Final = ("cached", "skipped")
BY_ATTENTION: Final = (
    *("held", "repairing", "failed", "asked", "running", "waiting", "suspended"),
    *("cancelled", "completed", "cached", "skipped"),
)
_decode_case = msgspec.json.Decoder(CaseDocument).decode
_decode_event = msgspec.json.Decoder(Event).decode
_decode_item = msgspec.json.Decoder(ItemDocument).decode
_decode_job = msgspec.json.Decoder(Job).decode


def state_of_counts(counts: Mapping[str, int]) -> str:
    """The state that needs most attention."""
    return next((state for state in BY_ATTENTION if counts.get(state)), "")


def _by_state(count: NameCount) -> Counter[str]:
    found = Counter({state: getattr(count, word) for word, state in STATES.items()})
    found.update({state: getattr(count, state) for state in STATES_MORE})
    return +found


class CaseGraph:
    """One case's graph while it is made."""

    def __init__(self, runtime: Runtime, store: Store, view: CaseView, flow: Flow) -> None:
        self._runtime = runtime
        self._store = store
        self._view = view
        self._flow = flow
        self._live: LiveCase | None = runtime.manager.live.get(view.id)
        drawn = draw_flow(flow, self._deployed)
        self._nodes = {node.id: node for node in drawn.nodes}
        self._edges = list(drawn.edges)
        self._is_whole = drawn.is_whole
        self._ids = self._by_flow_and_name(drawn)
        self._counts: dict[str, Counter[str]] = {id: Counter() for id in self._nodes}
        self._samples: dict[str, list[ItemId]] = {}
        self._cases: dict[str, list[CaseId]] = {}
        self._mended = Counter[str]()
        self._calls: dict[CaseId, str] = {view.id: ""}  # the nodes that called cases are drawn in

    def _deployed(self, name: str) -> Flow | None:
        found = self._runtime.flows.of_project(name, self._view.project)
        return found.flow if found is not None else None

    def _by_flow_and_name(self, drawn: FlowGraph) -> dict[tuple[str, str], list[str]]:
        """The nodes by the call that they are in (empty: of the case itself) and the name that their items have."""
        found: dict[tuple[str, str], list[str]] = {}
        for node in drawn.nodes:
            found.setdefault((self._call_around(node), node.name), []).append(node.id)
        return found

    def _call_around(self, node: GraphNode) -> str:
        around = self._nodes.get(node.parent or "")
        while around is not None and not around.flow:
            around = self._nodes.get(around.parent or "")
        return around.id if around is not None else ""

    async def make(self, decisions: Sequence[Decision]) -> GraphView:
        self._count("", self._view.counts)
        await self._count_called()
        speaks = any(node.kind in MESSAGE_KINDS for node in self._nodes.values()) or self._flow.xml is not None
        notes = await self._notes() if speaks else []
        self._count_notes(notes)
        self._count_structure()
        self._count_tasks()
        self._count_repairs(decisions)
        await self._sample()
        exlets = [await self._exlet(key, found) for key, found in by_task_and_exlet(decisions).items()]
        nodes = [self._whole(node) for node in self._nodes.values()]
        return GraphView(
            flow=self._view.flow,
            nodes=[*self._with_states_of_parts(nodes), *(node for drawn in exlets for node in drawn.nodes)],
            edges=[*self._edges, *(edge for drawn in exlets for edge in drawn.edges)],
            messages=await self._messages(notes) if speaks else [],
            is_whole=self._is_whole,
        )

    # Counts

    def _count(self, call: str, counts: Iterable[NameCount]) -> None:
        for count in counts:
            for id in self._ids.get((call, count.name), ())[:1]:
                self._counts[id].update(_by_state(count))
                self._mended[id] += count.mended

    async def _count_called(self) -> None:
        """The cases that it called, and those called by these, into the flows drawn inside the calls."""
        if not any(node.flow for node in self._nodes.values()):
            return
        calls, read = self._calls, 0
        async for found in self._store.scan(CASE_KIND, f"{self._view.id}."):
            called = _decode_case(found.body)
            around = calls.get(called.parent) if called.parent is not None else None
            if around is not None and called.parent_item is not None:
                for id in self._ids.get((around, item_name(called.parent_item)), ())[:1]:
                    calls[called.id] = id
                    self._cases.setdefault(id, []).append(called.id)
                    live = self._runtime.manager.live.get(called.id)
                    self._count(id, live.tally.counts() if live is not None else called.counts)
            read += 1
            if read == CALLED_READ:
                self._is_whole = False
                return

    async def _notes(self) -> list[ItemDocument]:
        where = [FieldCondition("case", self._view.id)]
        return [_decode_item(found.body) for found in await self._store.search(ITEM_KIND, where, limit=NOTES_READ)]

    def _count_notes(self, notes: Iterable[ItemDocument]) -> None:
        """Messages that were taken and partners that answered, which are no work and not counted otherwise."""
        for note in notes:
            for id in self._ids.get(("", note.name), ())[:1] if note.kind in MESSAGE_KINDS else ():
                self._counts[id][note.state] += 1
                self._sampled(id, note.item)

    def _count_structure(self) -> None:
        """What of a live case is under way: scopes, loops and choices, and what waits for messages or a time."""
        if self._live is None:
            return
        case = self._live.case
        under_way = Counter(instance.node for instance in case.instances.values())
        for index, number in under_way.items():
            node = case.plan.nodes[index]
            if node.name in self._nodes and not self._counts[node.name] and _is_structure(self._nodes[node.name].kind):
                self._counts[node.name]["running"] += number
        for item in live_items(case):
            for id in self._ids.get(("", item.name), ())[:1] if not item.serial or item.kind == "invoke" else ():
                self._counts[id]["waiting"] += 1
                self._sampled(id, item.item)

    def _count_tasks(self) -> None:
        """User tasks that are open wait for a person, and for nothing else."""
        for task in self._runtime.tasks.open_below(self._view.id) if self._live is not None else ():
            around = self._calls.get(task.case)
            for id in self._ids.get((around, item_name(task.item)), ())[:1] if around is not None else ():
                _move(self._counts[id], "asked", 1, ("waiting", "running"))
                if not around:
                    self._sampled(id, task.item)

    def _count_repairs(self, decisions: Iterable[Decision]) -> None:
        """Items that are being mended, or wait for a person, are counted as that and as nothing else."""
        mending = Counter(each.task for each in decisions if each.state == "running" or each.result == RETRYING)
        own = [item for case, _, item in (each.partition(":") for each in self._view.held) if case == self._view.id]
        held = Counter(item_name(ItemId(item)) for item in own)
        for item in own:
            for id in self._ids.get(("", item_name(ItemId(item))), ())[:1]:
                self._sampled(id, ItemId(item))
        for word, numbers in (("held", held), ("repairing", mending)):
            for name, number in numbers.items():
                for id in self._ids.get(("", name), ())[:1]:
                    _move(self._counts[id], word, number)

    # Samples

    def _sampled(self, id: str, item: ItemId) -> None:
        sample = self._samples.setdefault(id, [])
        if len(sample) < SAMPLE and item not in sample:
            sample.append(item)

    async def _sample(self) -> None:
        """Items that failed or run first, then some of the first ones."""
        case, found = FieldCondition("case", self._view.id), list[Job]()
        for state in ("failed", "running"):
            where = [case, FieldCondition("state", state)]
            found += [
                _decode_job(each.body) for each in await self._store.search(JOB_KIND, where, limit=JOBS_LOOKED_AT)
            ]
        first = [f"{self._view.id}/{serial}" for serial in range(1, JOBS_LOOKED_AT + 1)]
        found += [_decode_job(each.body) for each in await self._store.get_many(JOB_KIND, first)]
        for job in found:
            for id in self._ids.get(("", job.name or item_name(job.spec.item)), ())[:1]:
                self._sampled(id, job.spec.item)

    # What is drawn

    def _whole(self, node: GraphNode) -> GraphNode:
        counts = dict(+self._counts[node.id])
        return msgspec.structs.replace(
            node,
            counts=counts,
            state=state_of_counts(counts),
            mended=self._mended[node.id],
            items_sample=self._samples.get(node.id, []),
            cases=self._cases.get(node.id, [])[:SAMPLE],
        )

    def _with_states_of_parts(self, nodes: list[GraphNode]) -> list[GraphNode]:
        """What has parts and no items of its own is in the state of the part that needs most attention."""
        states = {node.id: Counter({node.state: 1}) if node.state else Counter[str]() for node in nodes}
        for node in reversed(nodes):  # a part comes after what it is in
            if node.parent is not None and node.parent in states:
                states[node.parent].update(states[node.id])
        return [
            node
            if node.counts and node.state
            else msgspec.structs.replace(node, state=state_of_counts(states[node.id]))
            for node in nodes
        ]

    async def _exlet(self, key: tuple[str, str], decisions: Sequence[Decision]) -> FlowGraph:
        node = exlet_node(key, decisions)
        edges = [
            GraphEdge(source=id, target=node.id, kind="repair", note=results_text(decisions))
            for id in self._ids.get(("", key[0]), ())[:1]
        ]
        inside = FlowGraph([], [], True)
        for case in node.cases[:1]:
            try:
                inside = with_prefix(draw_flow(await self._runtime.manager.flow_of(case)), f"{node.id}/", node.id)
            except NotFound:
                pass  # it never began, or was removed: its steps are not known
        return FlowGraph([node, *inside.nodes], [*edges, *inside.edges], True)

    async def _messages(self, notes: Iterable[ItemDocument]) -> list[GraphMessage]:
        """The messages that it got, and the partners that answered it, in the order of time."""
        found = [
            GraphMessage(at=note.ended_at, direction="out", name=note.name, item=note.item, text=note.reason)
            for note in notes
            if note.kind == "invoke"
        ]
        for entry in await self._store.read(journal_of(self._view.id), 0, EVENTS_READ):
            event = _decode_event(entry)
            if isinstance(event.fact, Deliver):
                found.append(GraphMessage(at=event.at, direction="in", name=event.fact.channel))
        return sorted(found, key=lambda message: message.at)[-MESSAGES_SHOWN:]


def _is_structure(kind: str) -> bool:
    return kind in ("scope", "choose", "pick", "while", "until", "for-each")


def _move(
    counts: Counter[str],
    word: str,
    number: int,
    places: Sequence[str] = ("failed", "waiting", "suspended", "running"),
) -> None:
    """Count so many as this, and no longer as what they were counted as before."""
    counts[word] += number
    for before in places:
        taken = min(counts[before], number)
        counts[before] -= taken
        number -= taken


# Repairs


def by_task_and_exlet(decisions: Iterable[Decision]) -> dict[tuple[str, str], list[Decision]]:
    found: dict[tuple[str, str], list[Decision]] = {}
    for each in decisions:
        if each.exlet and each.state not in ("passive", "ignored"):
            found.setdefault((each.task, each.exlet), []).append(each)
    return found


def exlet_node(key: tuple[str, str], decisions: Sequence[Decision]) -> GraphNode:
    """What an exlet did for one task. `decisions` come the newest first. One that ran to its end each time, and never
    helped, has failed."""
    task, exlet = key
    in_vain = all(each.result == "failed" for each in decisions if each.state == "done")
    done = "failed" if in_vain else "completed"
    states = {"running": "running", "done": done, "failed": "failed", "rejected": "cancelled"}
    counts = dict(
        Counter("repairing" if each.result == RETRYING else states.get(each.state, each.state) for each in decisions)
    )
    cases = [each.exlet_case for each in decisions if each.exlet_case is not None]
    items = list(dict.fromkeys(each.item for each in decisions if each.item is not None))
    return GraphNode(
        id=f"{EXLET}:{task}:{exlet}",
        name=exlet,
        kind=EXLET,
        exlet=exlet,
        note=results_text(decisions),
        counts=counts,
        state=state_of_counts(counts),
        items_sample=items[:SAMPLE],
        cases=cases[:EXLET_CASES],
    )


def results_text(decisions: Iterable[Decision]) -> str:
    counted = Counter("under way" if each.result == RETRYING else each.result or each.state for each in decisions)
    return ", ".join(f"{number} {word}" for word, number in counted.most_common())


def graph_of_items(view: CaseView, items: Iterable[ItemView], decisions: Sequence[Decision]) -> GraphView:
    """A case of which only the items are known."""
    counts: dict[str, Counter[str]] = {}
    kinds: dict[str, str] = {}
    samples: dict[str, list[ItemId]] = {}
    for item in items:
        counts.setdefault(item.name, Counter())[item.state] += 1
        kinds.setdefault(item.name, item.kind)
        samples.setdefault(item.name, []).append(item.item)
    nodes = [
        GraphNode(
            id=name,
            name=name,
            kind=kinds[name],
            counts=dict(states),
            state=state_of_counts(states),
            items_sample=samples[name][:SAMPLE],
        )
        for name, states in counts.items()
    ]
    exlets = by_task_and_exlet(decisions)
    nodes += [exlet_node(key, found) for key, found in exlets.items()]
    edges = [
        GraphEdge(source=task, target=f"{EXLET}:{task}:{exlet}", kind="repair", note=results_text(found))
        for (task, exlet), found in exlets.items()
        if task in counts
    ]
    return GraphView(flow=view.flow, nodes=nodes, edges=edges, is_whole=False)
