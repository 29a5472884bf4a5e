"""What an operation is about, and so whose project decides about it.

Each operation declares its subject. The gate of the server (server/gate.py) finds the subject's project before anything
is done; an operation that declares none is for administrators alone."""

from typing import Literal

import msgspec

SubjectKind = Literal[
    "case",
    "decision",
    "flow",
    "rules",
    "secret",
    "limit",
    "schedule",
    "data set",
    "logical file",
    "stored file",
    "proposal",
    "engine",
    "project",
    "anything",
    "rule draft",
    "listed",
    "installation",
]


class Subject(msgspec.Struct, frozen=True):
    """`argument` names what it is about, or its `field` does. `may_be_new`: there need not be such a thing yet; then it
    is about the project that is named, or the caller's usual one. `makes`: from then on the name belongs to that
    project."""

    kind: SubjectKind
    argument: str = ""
    field: str = ""
    may_be_new: bool = False
    makes: bool = False

    @property
    def is_single(self) -> bool:
        """Whether there is one thing whose project decides."""
        return self.kind not in ("listed", "installation", "stored file")


CASE = Subject("case", "case")
JOB = Subject("case", "job")
TASK = Subject("case", "task")
DECISION = Subject("decision", "decision")
ADMINISTRATION_TASK = Subject("decision", "task")
REJECTED = Subject("decision", "wish", "decision")
FLOW = Subject("flow", "name")
NEW_FLOW = Subject("flow", "flow", "name", may_be_new=True, makes=True)
RULES = Subject("rules", "name")
NEW_RULES = Subject("rules", "rules", "name", may_be_new=True, makes=True)
REPLAYED_RULES = Subject("rules", "rules", "name", may_be_new=True)
RULE_DRAFT = Subject("rule draft", "wish", may_be_new=True, makes=True)
TRIED_RULE = Subject("rule draft", "wish", may_be_new=True)
FORECAST_FLOW = Subject("flow", "flow", may_be_new=True)
SECRET = Subject("secret", "name")
NEW_SECRET = Subject("secret", "name", may_be_new=True, makes=True)
LIMIT = Subject("limit", "name")
NEW_LIMIT = Subject("limit", "name", may_be_new=True, makes=True)
SCHEDULE = Subject("schedule", "name")
NEW_SCHEDULE = Subject("schedule", "spec", "name", may_be_new=True, makes=True)
DATA_SET = Subject("data set", "name")
NEW_DATA_SET = Subject("data set", "wish", "name", may_be_new=True, makes=True)
FILLED_DATA_SET = Subject("data set", "name", may_be_new=True, makes=True)
LOGICAL_FILE = Subject("logical file", "name")
NEW_LOGICAL_FILE = Subject("logical file", "file", "name", may_be_new=True, makes=True)
STORED_FILE = Subject("stored file", "sha256")
PROPOSAL = Subject("proposal", "proposal")
ENGINE_NAME = Subject("engine", "engine")
NEW_ENGINE = Subject("engine", "name", may_be_new=True, makes=True)
PROJECT = Subject("project", "name")
WHATEVER = Subject("anything", "subject")
"""A case, an item, a job, a schedule or a pilot."""
LISTED = Subject("listed")
"""All that the caller may see: the domain's function is given the projects, as `sight`, and asks the store for no
other."""
INSTALLATION = Subject("installation")
"""What belongs to no project: sites, pilots, servers, domains, settings."""
