"""An index of the live cases that may take a message, so that not all of them have to be asked.

A case in a conversation takes only messages with certain values of certain properties. So cases are indexed by these
values, and a message's own values say where to look. A case that is found may have stopped listening since, and is
asked; a case that is not found would not take the message."""

from typing import NamedTuple

import msgspec

from mendflow.core.engine.xml.listeners import conversations, listened_type
from mendflow.core.engine.xml.properties import ROUTING_WORK_MAX, properties_of
from mendflow.core.expressions.work_budget import WORK
from mendflow.core.model.ids import CaseId
from mendflow.core.model.values import Value
from mendflow.core.model.xml import XmlDefinitions
from mendflow.services.cases.live_case import LiveCase

_Key = tuple[tuple[str, ...], bytes]
ANY_MESSAGE: _Key = ((), b"")

_encode = msgspec.json.Encoder(order="deterministic").encode


class Channel(NamedTuple):
    """Of one version of a project's flow: another may find properties elsewhere in the same message."""

    project: str
    flow: str
    digest: str
    name: str


class _Listeners:
    """The listeners of one channel, by the values that they listen for."""

    def __init__(self, world: XmlDefinitions, message_type: str) -> None:
        self.world = world
        self.message_type = message_type
        self.by_key: dict[_Key, dict[CaseId, None]] = {}
        self.properties: dict[tuple[str, ...], None] = {}

    def add(self, key: _Key, case: CaseId) -> None:
        self.by_key.setdefault(key, {})[case] = None
        if key is not ANY_MESSAGE:
            self.properties[key[0]] = None

    def remove(self, key: _Key, case: CaseId) -> None:
        cases = self.by_key.get(key, {})
        cases.pop(case, None)
        if not cases:
            self.by_key.pop(key, None)

    def cases_for_message(self, message: Value) -> list[CaseId]:
        known: dict[str, Value] = {}
        found = dict(self.by_key.get(ANY_MESSAGE, {}))
        for names in self.properties:
            with WORK.of_at_most(ROUTING_WORK_MAX):
                values = properties_of(self.world, names, self.message_type, message, known)
            if values is not None:
                found |= self.by_key.get((names, _encode(values)), {})
        return list(found)


class ListenerIndex:
    def __init__(self) -> None:
        self._channels: dict[tuple[str, str, str], dict[Channel, _Listeners]] = {}  # by project, flow and name
        self._cases: dict[CaseId, dict[Channel, list[_Key]]] = {}
        self._property_values: dict[str, dict[tuple[str, tuple[str, ...]], bytes | None]] = {}  # by message that waits

    def update(self, live: LiveCase, name: str) -> None:
        """An activity of the case listens on the channel, or for other values than before."""
        channel = _channel(live, name)
        self._drop(live.id, channel)
        kind = listened_type(live.case, name)
        if kind is None or live.flow.xml is None:
            return
        listeners = self._channels.setdefault((channel.project, channel.flow, name), {}).setdefault(
            channel, _Listeners(live.flow.xml, kind)
        )
        keys = [ANY_MESSAGE if each is None else (each[0], _encode(each[1])) for each in conversations(live.case, name)]
        for key in keys:
            listeners.add(key, live.id)
        self._cases.setdefault(live.id, {})[channel] = keys

    def _drop(self, case: CaseId, channel: Channel) -> None:
        keys = self._cases.get(case, {}).pop(channel, ())
        versions = self._channels.get((channel.project, channel.flow, channel.name), {})
        listeners = versions.get(channel)
        if listeners is None:
            return
        for key in keys:
            listeners.remove(key, case)
        if not listeners.by_key:
            del versions[channel]

    def forget(self, case: CaseId) -> None:
        """The case is over."""
        for channel in list(self._cases.get(case, ())):
            self._drop(case, channel)
        self._cases.pop(case, None)

    def may_take(self, live: LiveCase, name: str, id: str, message: Value) -> bool:
        """Whether a case may take a message that waits. The message's values are computed once, however many cases
        ask."""
        keys = self._cases.get(live.id, {}).get(_channel(live, name), ())
        if not keys or ANY_MESSAGE in keys or live.flow.xml is None:
            return bool(keys)
        kind, known = "", self._property_values.setdefault(id, {})
        for names, values in keys:
            if (live.document.digest, names) not in known:
                kind = kind or listened_type(live.case, name) or ""
                if not kind:
                    return False  # it listens no longer; what is found out now would hold for other cases too
                with WORK.of_at_most(ROUTING_WORK_MAX):
                    found = properties_of(live.flow.xml, names, kind, message)
                known[live.document.digest, names] = None if found is None else _encode(found)
            if known[live.document.digest, names] == values:
                return True
        return False

    def drop_message(self, message: str) -> None:
        """A message no longer waits."""
        self._property_values.pop(message, None)

    def has_listener(self, project: str, flow: str, name: str) -> bool:
        """Whether any case of the project's flow listens on the channel."""
        return bool(self._channels.get((project, flow, name)))

    def cases_for_message(self, project: str, flow: str, name: str, message: Value) -> list[CaseId]:
        """The cases that may take a message. A flow that is sent along may have the name of one of another project: its
        cases hear nothing of what comes for that."""
        versions = self._channels.get((project, flow, name), {})
        return [case for listeners in list(versions.values()) for case in listeners.cases_for_message(message)]


def _channel(live: LiveCase, name: str) -> Channel:
    return Channel(live.document.project, live.document.flow, live.document.digest, name)
