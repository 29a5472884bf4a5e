"""Which kinds of documents belong to a case: what is exported with it, and goes with it."""

from typing import Final

from mendflow.services.base.cluster import CASE_KIND, JOB_KIND
from mendflow.services.cases.live_case import ITEM_KIND, RUNS_KIND
from mendflow.services.cases.order_dispatcher import REPLY_KIND
from mendflow.services.cases.user_tasks import TASK_KIND
from mendflow.services.domains.router import ROUTE_KIND
from mendflow.services.messaging.callbacks import CALLBACK_KIND
from mendflow.services.messaging.message_store import ENDPOINT_KIND, MESSAGE_KIND, MESSAGE_REPLY_KIND
from mendflow.services.recovery.decisions import DECISION_KIND, OPEN_DECISION_KIND
from mendflow.services.recovery.levels import LEVEL_KIND
from mendflow.services.recovery.proxy.conversations import CONVERSATION_KIND
from mendflow.services.recovery.settled_cases import PRUNED_RUNS_KIND

TREE_KINDS: Final = (
    JOB_KIND,
    ITEM_KIND,
    RUNS_KIND,
    TASK_KIND,
    REPLY_KIND,
    CONVERSATION_KIND,
    DECISION_KIND,
    OPEN_DECISION_KIND,
    LEVEL_KIND,
    ENDPOINT_KIND,
    MESSAGE_KIND,
    MESSAGE_REPLY_KIND,
    CALLBACK_KIND,
    ROUTE_KIND,
    PRUNED_RUNS_KIND,
    CASE_KIND,
)
"""Documents that are named after a case of the tree. Cases come last: when one is there, all that it needs is. The tree
of a flow's messages is named after the flow, and no case has its name."""
