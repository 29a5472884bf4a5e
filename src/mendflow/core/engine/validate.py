"""The invariants of a case between two events. Every property test checks them; a violation is our bug."""

from collections import Counter

from mendflow.core.engine.plan import DEFAULT
from mendflow.core.engine.state import (
    Case,
    CaseIndex,
    CompensateInstance,
    CompensationRecord,
    ForEachInstance,
    Graph,
    Instance,
    InstancePhase,
    Item,
    PickInstance,
    ReceiveItem,
    ScopeInstance,
    Structure,
    TimedItem,
)
from mendflow.core.engine.xml.correlation import MARK
from mendflow.core.engine.xml.listeners import key_of, listener_activity
from mendflow.core.engine.xml.shapes import flaw
from mendflow.core.model.xml import ScopeDeclarations


def validate(case: Case) -> None:
    """Assert every invariant of a case's state."""
    if case.status == "blank":
        assert not case.instances and not case.position
        return
    if case.over:
        _nothing_is_left(case)
        return
    for instance in case.instances.values():
        _stands_in_the_tree(case, instance)
        _is_where_it_can_be(case, instance)
        if isinstance(instance, Graph):
            _links_agree(case, instance)
        if isinstance(instance, ForEachInstance):
            _turns_add_up(instance)
    _environments_are_held_by_who_needs_them(case)
    _the_index_is_right(case)
    _messages_have_places_to_go(case)
    _isolation_has_one_owner(case)
    _holders_hold_what_is_suspended(case)
    _completions_are_counted(case)
    _variables_hold_what_they_are_declared_to(case)
    if case.plan.flow.xml is not None:
        _conversations_stand_where_they_are_declared(case)


def _nothing_is_left(case: Case) -> None:
    left = (case.instances, case.envs, case.backlog, case.listeners, case.mailbox, case.facts, case.isolated_next)
    assert not any(left), f"case {case.id} is over, but something of it is still live: {left}"
    assert not (
        case.holders or case.item_holders or case.at_start or case.restarts or case.levels or case.completed_items
    )
    assert not case.index.items and not case.index.serials
    assert not (case.continuation or case.isolated or case.root)
    assert case.fault is not None or case.status == "completed"


def _variables_hold_what_they_are_declared_to(case: Case) -> None:
    world = case.plan.flow.xml
    for env in case.envs.values() if world is not None else ():
        node = case.plan.nodes[env.node]
        links = node.declared.partner_links if node.declared is not None else {}
        for name, value in env.variables.items():
            if name.startswith("@"):
                assert name[1:] in links, f"{name} is no partner link here"
            elif name in node.types:
                assert world is not None and not flaw(world, node.types[name], value), f"{name} holds {value!r:.200}"


def _conversations_stand_where_they_are_declared(case: Case) -> None:
    """Correlation sets and requests are in the environments that declare them, and listeners are indexed by what they
    listen with. A request is open once."""
    requests: list[str] = []
    for env in case.envs.values():
        declared = case.plan.nodes[env.node].declared or ScopeDeclarations()
        for name, values in env.variables.items():
            if name.startswith(MARK):
                assert len(values) == len(declared.correlation_sets[name.removeprefix(MARK)])
        for key, message in (env.requests or {}).items():
            exchange = key.partition("#")[2].rpartition("@")[0]
            assert exchange in declared.exchanges if exchange else env.home, f"{key} is open where nobody declares it"
            requests.append(message)
    assert len(requests) == len(set(requests)), "a request is open twice"
    for listeners in case.listeners.values():
        for key, listener in listeners.items():
            activity, at = listener_activity(case, listener)
            assert activity.xml is None or key == key_of(case, at, activity)


def _stands_in_the_tree(case: Case, instance: Instance) -> None:
    assert 0 < instance.id <= case.last_id
    if instance.id == case.root:
        assert not instance.parent
        return
    parent = case.instances[instance.parent]
    assert isinstance(parent, Structure) and instance.id in parent.children
    assert parent.phase in (InstancePhase.RUNNING, InstancePhase.STOPPING, InstancePhase.DONE)
    scope = case.instances[instance.scope]
    assert isinstance(scope, ScopeInstance)
    assert instance.env in case.envs or instance.phase is InstancePhase.DONE


def _is_where_it_can_be(case: Case, instance: Instance) -> None:
    node = case.plan.nodes[instance.node]
    if isinstance(instance, Structure):
        assert all(child in case.instances for child in instance.children)
        waits = instance.children or isinstance(instance, (PickInstance, ScopeInstance))
        assert waits or instance.phase is not InstancePhase.RUNNING or case.backlog, f"{node.name} waits for nothing"
    if not case.backlog:
        assert instance.phase not in (InstancePhase.NEW, InstancePhase.DONE), (
            f"{node.name} was left in the middle of a step"
        )
    if instance.phase is not InstancePhase.JOINING:
        return
    assert instance.undecided > 0 or case.backlog


def _links_agree(case: Case, graph: Graph) -> None:
    links = case.plan.links
    assert all(links[link].owner == graph.node for link in (*graph.links, *graph.waiting))
    waiting = Counter(graph.waiting.values())
    for target in waiting:
        assert case.instances[target].phase is InstancePhase.JOINING
    assert not graph.links.keys() & graph.waiting.keys()


def _turns_add_up(turns: ForEachInstance) -> None:
    if turns.phase is InstancePhase.RUNNING and not turns.over:
        assert turns.ended + len(turns.children) == turns.next <= turns.total
    assert turns.counted <= turns.ended


def _environments_are_held_by_who_needs_them(case: Case) -> None:
    holds: Counter[int] = Counter(env.parent for env in case.envs.values())
    for instance in case.instances.values():
        if isinstance(instance, ScopeInstance):
            holds.update((instance.inner, instance.held))
            _count_records(instance.records, holds)
            _count_records(instance.targets, holds)
            assert case.plan.nodes[instance.node].kind == DEFAULT or instance.stage or not instance.inner
        if isinstance(instance, CompensateInstance):
            _count_records(instance.targets, holds)
        if isinstance(instance, ForEachInstance):
            holds.update(case.instances[child].env for child in instance.children)
    del holds[0]
    actual = {env.id: env.holds for env in case.envs.values()}
    assert actual == dict(holds), f"environments are held {actual}, but needed {dict(holds)}"


def _count_records(records: list[CompensationRecord], holds: Counter[int]) -> None:
    pending = list(records)
    while pending:
        record = pending.pop()
        holds[record.env] += 1
        pending.extend(record.inner)


def _the_index_is_right(case: Case) -> None:
    live = [each for each in case.instances.values() if each.phase is not InstancePhase.DONE]
    fresh = CaseIndex(case.instances.values())
    assert fresh.items == case.index.items
    assert fresh.serials == case.index.serials
    assert len(fresh.items) == sum(isinstance(each, Item) and bool(each.item) for each in live), (
        "an item id is not unique"
    )
    assert all(serial <= case.last_serial for serial in (*fresh.serials, *case.posted, case.continuation))
    if case.status == "running" and not case.facts:
        kept = {serial for each in live if isinstance(each, Item) and each.suspended for serial in _serials(each)}
        assert case.answered.keys() <= kept


def _serials(item: Item) -> set[int]:
    return {item.serial, *(item.timers if isinstance(item, TimedItem) else ())}


def _messages_have_places_to_go(case: Case) -> None:
    listening = {
        (channel, key): each.id
        for each in case.instances.values()
        if isinstance(each, (ReceiveItem, PickInstance, ScopeInstance))
        for channel, key in each.listening
    }
    assert listening == {
        (channel, key): listener.instance
        for channel, listeners in case.listeners.items()
        for key, listener in listeners.items()
    }
    assert all(case.listeners.values())
    assert all(case.mailbox.values())


def _isolation_has_one_owner(case: Case) -> None:
    owners = [each.id for each in case.instances.values() if isinstance(each, ScopeInstance) and each.is_isolating]
    assert owners == ([case.isolated] if case.isolated else [])
    assert not case.isolated_next or case.isolated
    for ticket, waiting in case.isolated_next.items():
        scope = case.instances[waiting]
        assert isinstance(scope, ScopeInstance) and scope.ticket == ticket > case.tickets_served


def _holders_hold_what_is_suspended(case: Case) -> None:
    assert not case.holders or case.status == "suspended"
    for id, holders in case.item_holders.items():
        item = case.instances[id]
        assert isinstance(item, Item) and item.suspended and holders
    for id, order in case.at_start.items():
        item = case.instances[id]
        assert isinstance(item, Item) and type(item.order) is type(order)
    for id, times in (*case.restarts.items(), *case.levels.items()):
        assert isinstance(case.instances[id], Item) and times > 0


def _completions_are_counted(case: Case) -> None:
    scopes = [each for each in case.instances.values() if isinstance(each, ScopeInstance)]
    pending = [record for scope in scopes for record in (*scope.records, *scope.targets)]
    numbers = list(case.completed_items)
    while pending:
        record = pending.pop()
        numbers.extend([record.number] if record.number else [])
        pending.extend(record.inner)
    assert len(numbers) == len(set(numbers)), "two completions have one number"
    assert all(0 < number <= case.completions for number in numbers)
