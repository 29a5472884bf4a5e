"""What an import of an archive tells."""

import msgspec

from mendflow.core.model.ids import CaseId


class AddedDocuments(msgspec.Struct, kw_only=True):
    """What an import added of what all cases share, by name. Among the `rules`, `*` are the default rules, which hold
    for every case. `elements` are storage elements; `data_files` counts the files in the catalogue."""

    flows: list[str] = []
    rules: list[str] = []
    compensations: list[str] = []
    patterns: list[str] = []
    elements: list[str] = []
    data_files: int = 0


class ImportReport(msgspec.Struct, kw_only=True):
    """The result of an import. `suspended` are unfinished cases that wait to be resumed; `present` existed with the
    same content; `skipped` existed with other content. These are cases that somebody or a message started; `cases`
    counts all, including called and repairing ones. `added` are the other documents that came with them and were not
    here before."""

    imported: list[CaseId] = []
    suspended: list[CaseId] = []
    present: list[CaseId] = []
    skipped: list[CaseId] = []
    cases: int = 0
    files: int = 0
    added: AddedDocuments = msgspec.field(default_factory=AddedDocuments)
    notes: list[str] = []
