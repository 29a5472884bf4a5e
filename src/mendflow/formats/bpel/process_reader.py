"""The context for reading an activity: its process, and inherited declarations."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from mendflow.core.model.errors import Problem
from mendflow.core.model.flow import Activity, Empty
from mendflow.core.model.xml import Operation, PartnerLink
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.definitions import Definitions
from mendflow.formats.bpel.expressions import Languages
from mendflow.formats.bpel.names import ACTIVITIES, ActivityNames, elements, local_name, own_elements
from mendflow.formats.bpel.reader import SourceDocument, XmlReader
from mendflow.formats.bpel.source_files import SourceFiles
from mendflow.formats.bpel.standard_elements import with_standard
from mendflow.formats.spelling import nearest_word

STANDARD_PARTS: Final = {"targets": 1, "sources": 1}
STANDARD_ATTRIBUTES: Final = ("name", "suppressJoinFailure")


class VisibleLink(msgspec.Struct, frozen=True):
    """`channel` is the link's own name for channels: another link of the same name has another one."""

    link: PartnerLink
    channel: str


class ScopeContext(msgspec.Struct, frozen=True, kw_only=True):
    """`inner` gathers the scopes directly inside the scope that is being read, by the names that they are written
    with; `compensable` are those of the scope whose handler is being read."""

    suppress_join_failure: bool = False
    exit_on_standard_fault: bool = False
    links: dict[str, VisibleLink] = {}
    inner: dict[str, str] = {}
    compensable: dict[str, str] = {}

    def but(self, **changed: Any) -> "ScopeContext":
        return msgspec.structs.replace(self, **changed)


ActivityReader = Callable[["ProcessReader", ParsedElement, ScopeContext], Activity]


class ProcessReader(XmlReader):
    """The process that is being read. `readers` know the activities, by the names of their elements."""

    def __init__(
        self,
        document: SourceDocument,
        problems: list[Problem],
        definitions: Definitions,
        places: SourceFiles,
        readers: Mapping[str, ActivityReader],
    ) -> None:
        super().__init__(document.file, problems)
        self.names = ActivityNames(document.root)
        self.definitions = definitions
        self.places = places
        self.languages = Languages()
        self.sheets: dict[str, str] = {}
        self._readers = readers
        self._channels: dict[str, int] = {}

    def parts_of(
        self, at: ParsedElement, known: Mapping[str, int], attributes: Iterable[str] = ()
    ) -> dict[str, list[ParsedElement]]:
        """The parts of an activity that are its own, and not those of every activity, with its attributes judged."""
        self.only(at, (*STANDARD_ATTRIBUTES, *attributes))
        return self.parts(at, {**STANDARD_PARTS, **known})

    def activity(self, at: ParsedElement, context: ScopeContext, reader: ActivityReader | None = None) -> Activity:
        """An activity with whatever every activity may have; read by its own reader, unless another one is given."""
        named = next(elements(at), at) if local_name(at) == "extensionActivity" else at
        suppress = self.truth(named, "suppressJoinFailure", context.suppress_join_failure)
        read = (reader or self._readers[local_name(at)])(self, at, context.but(suppress_join_failure=suppress))
        return with_standard(self, named, read, self.languages, suppress)

    def activities(self, at: ParsedElement, context: ScopeContext) -> tuple[Activity, ...]:
        """All activities directly in an element."""
        return tuple(self.activity(child, context) for child in own_elements(at, *ACTIVITIES))

    def body(self, at: ParsedElement, context: ScopeContext) -> Activity:
        """The one activity in an element."""
        inside = list(own_elements(at, *ACTIVITIES))
        if len(inside) != 1:
            self.problem(
                at, f"<{local_name(at)}> holds one activity; here it has {len(inside)}: put them into a <sequence>"
            )
        return self.activity(inside[0], context) if inside else Empty(name=self.names.claim("empty"))

    # partner links

    def channel(self, link: str) -> str:
        """A name for the channels of a partner link that is declared here."""
        self._channels[link] = number = self._channels.get(link, 0) + 1
        return link if number == 1 else f"{link}~{number}"

    def link(self, at: ParsedElement, context: ScopeContext) -> VisibleLink:
        """The partner link that an activity names."""
        name = self.needed(at, "partnerLink")
        found = context.links.get(name)
        if found is None and name:
            self.problem(at, f"no partner link {name} is declared around here", nearest_word(name, context.links))
        return found or VisibleLink(PartnerLink(type=""), name)

    def offered(self, at: ParsedElement, context: ScopeContext) -> tuple[VisibleLink, Operation]:
        """The partner link that an activity names, and the operation that the process itself offers on it."""
        link = self.link(at, context)
        if link.link.type and not link.link.my_role:
            self.problem(at, f"the partner link {link.channel} has no `myRole`, so nobody can send anything to it")
        return link, self._operation(at, link.link.mine)

    def called(self, at: ParsedElement, context: ScopeContext) -> Operation:
        """The operation that an activity calls."""
        link = self.link(at, context)
        if link.link.type and not link.link.partner_role:
            self.problem(at, f"the partner link {link.channel} has no `partnerRole`, so nobody is there to be called")
        return self._operation(at, link.link.partner)

    def _operation(self, at: ParsedElement, port_type: str) -> Operation:
        name = self.needed(at, "operation")
        known = self.definitions.port_types.get(port_type, {})
        if name not in known and port_type and name:
            self.problem(at, f"the port type {port_type} has no operation {name}", nearest_word(name, known))
        return known.get(name) or Operation(name=name, input="")
