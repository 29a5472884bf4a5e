"""The exception service: rules pick the repair, exlets carry it out, and the flow never knows.

ExceptionService   is told of points in the life of cases (interface X), decides, and starts exlets
Administration     what people do: rules, triggers, raise, mend, reject, decisions
ForeignEngines     engines of other systems, over the same interfaces
RuleBook           rule sets and their versions        DecisionBook   what was decided
Contexts           what conditions and exlets can ask  Past           what happened before, in numbers
LocalEngine        interfaces A and B of this server   RemoteEngine   the same for a foreign one
Selection          worklets for calls that leave the choice to the rules
Watches            what nobody tells of by itself: too long, not to be had, out of bounds"""

from mendflow.services.exception_service.administration import Administration
from mendflow.services.exception_service.contexts import Contexts, Places, Source
from mendflow.services.exception_service.decisions import DECISION_KIND, DecisionBook
from mendflow.services.exception_service.foreign import ForeignEngines
from mendflow.services.exception_service.local_engine import LocalEngine
from mendflow.services.exception_service.past import Past
from mendflow.services.exception_service.remote_engine import RemoteEngine
from mendflow.services.exception_service.rule_book import RuleBook
from mendflow.services.exception_service.rule_office import Added, RuleOffice, Wish
from mendflow.services.exception_service.selection import Selection
from mendflow.services.exception_service.service import DEPTH_MAX, ExceptionService
from mendflow.services.exception_service.watches import Watches

__all__ = [
    "DECISION_KIND",
    "DEPTH_MAX",
    "Added",
    "Administration",
    "Contexts",
    "DecisionBook",
    "ExceptionService",
    "ForeignEngines",
    "LocalEngine",
    "Past",
    "Places",
    "RemoteEngine",
    "RuleBook",
    "RuleOffice",
    "Selection",
    "Source",
    "Watches",
    "Wish",
]
