"""Whether a person is asked again about what was decided in the case that is run again.

A person decides about more than what the task shows: about what the flow does then, with what it was given. So an
answer has its grounds: a digest of the flow, of the flows that it calls, of its inputs with the defaults among them, of
what the case was told from outside before it asked (messages, answers of other people, what was written into it), and
of the same of the case that called it. It holds for a task with the same grounds, and for no other."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.flow import Call, Flow
from mendflow.core.model.ids import CaseId
from mendflow.services.cases.flow_compiler import FlowMemo
from mendflow.services.cases.flows import FlowDocument
from mendflow.services.cases.live_case import LiveCase

NO_GROUNDS: Final = ""
"""Of a task behind which something may happen that nobody can compare: an answer to it is never kept."""

_encode = msgspec.json.Encoder(order="deterministic").encode


class AnswerGrounds:
    """`deployed` has the newest version of a flow, which is what a call by its name starts."""

    def __init__(
        self, live: Callable[[CaseId], LiveCase | None], deployed: Callable[[str], FlowDocument | None]
    ) -> None:
        self._live = live
        self._deployed = deployed
        self._digests = FlowMemo(_digest_of_flow)
        self._calls = FlowMemo(_names_called)

    def case_to_ask(self, live: LiveCase, serial: int) -> CaseId | None:
        """The earlier case, if an answer in it may hold for this one: nothing has run since that could have come out
        otherwise, here or in the cases that called this one, and nobody wants the task to be done again."""
        document = live.document
        if document.rerun_of is None or document.cache == "none" or self._has_run_jobs(live):
            return None
        return None if live.runs_again(serial) else document.rerun_of

    def _has_run_jobs(self, live: LiveCase | None) -> bool:
        """Whether anything has run in the case, or in those that called it; also if one of these is not known."""
        while live is not None and not live.tally.has_run_jobs():
            if live.document.parent is None:
                return False
            live = self._live(live.document.parent)
        return True

    def of(self, live: LiveCase) -> str:
        """What an answer in this case is given for; NO_GROUNDS if that cannot be told."""
        document = live.document
        above = NO_GROUNDS
        if document.parent is not None and document.parent_item is not None:
            caller = self._live(document.parent)
            above = self.of(caller) if caller is not None else NO_GROUNDS
            if above == NO_GROUNDS:
                return NO_GROUNDS
        called = self._called_versions(live.flow, document.project)
        if called is None:
            return NO_GROUNDS
        if not live.inputs_digest:
            unless_given = {name: declared.default for name, declared in live.flow.inputs.items()}
            live.inputs_digest = _digest({**unless_given, **document.inputs})
        whole = [document.flow, document.project, self._digests.of(live.flow), called, live.inputs_digest, above]
        return _digest([*whole, live.case.external_digest])

    def _called_versions(self, flow: Flow, project: str) -> dict[str, str] | None:
        """The flows that it calls and that did not come with it, and those that these call. None if it leaves a call to
        the rules, or to another domain that has the flow."""
        found: dict[str, str] = {}
        pending = [flow]
        while pending:
            names = self._calls.of(pending.pop())
            for name in names:
                if name in found:
                    continue
                known = self._deployed(name) if name else None
                if known is None or known.project != project:
                    return None
                found[name] = self._digests.of(known.flow)
                pending.append(known.flow)
        return found


def _digest(value: object) -> str:
    return hashlib.sha256(_encode(value)).hexdigest()


def _digest_of_flow(flow: Flow) -> str:
    return hashlib.sha256(msgspec.json.encode(flow)).hexdigest()


def _names_called(flow: Flow) -> frozenset[str]:
    return frozenset(_names_elsewhere(flow, frozenset()))


def _names_elsewhere(flow: Flow, from_caller: frozenset[str]) -> Iterator[str]:
    """The names of flows that it calls and that are not in it; one that is in it has those that came with its caller,
    too. The empty name is a call that is left to the rules."""
    own = from_caller | {each.name for each in flow.calls}
    for activity in walk_activities(flow):
        if isinstance(activity, Call) and activity.flow not in own:
            yield activity.flow
    for inner in flow.calls:
        yield from _names_elsewhere(inner, own)
