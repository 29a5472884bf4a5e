"""Faults that the engine itself raises, under their WS-BPEL 2.0 names, so that handlers catch them by name.

Inside the engine a fault is raised as `FlowFault` up to its activity; from there it is a value that propagates through
the tree of activities. `FlowFault` never leaves `evolve`."""

from typing import Final

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.values import Value

AMBIGUOUS_RECEIVE: Final = "ambiguousReceive"
COMPLETION_CONDITION_FAILURE: Final = "completionConditionFailure"
CONFLICTING_RECEIVE: Final = "conflictingReceive"
CONFLICTING_REQUEST: Final = "conflictingRequest"
CORRELATION_VIOLATION: Final = "correlationViolation"
INVALID_BRANCH_CONDITION: Final = "invalidBranchCondition"
INVALID_EXPRESSION_VALUE: Final = "invalidExpressionValue"
INVALID_VARIABLES: Final = "invalidVariables"
JOIN_FAILURE: Final = "joinFailure"
MISMATCHED_ASSIGNMENT: Final = "mismatchedAssignmentFailure"
MISSING_REPLY: Final = "missingReply"
MISSING_REQUEST: Final = "missingRequest"
SCOPE_INITIALIZATION_FAILURE: Final = "scopeInitializationFailure"
SELECTION_FAILURE: Final = "selectionFailure"
SUB_LANGUAGE_FAULT: Final = "subLanguageExecutionFault"
UNINITIALIZED_PARTNER_ROLE: Final = "uninitializedPartnerRole"
UNINITIALIZED_VARIABLE: Final = "uninitializedVariable"
UNSUPPORTED_REFERENCE: Final = "unsupportedReference"
XSLT_INVALID_SOURCE: Final = "xsltInvalidSource"
XSLT_STYLESHEET_NOT_FOUND: Final = "xsltStylesheetNotFound"

DEADLINE: Final = "deadline"

STANDARD: Final = frozenset(
    {
        AMBIGUOUS_RECEIVE,
        COMPLETION_CONDITION_FAILURE,
        CONFLICTING_RECEIVE,
        CONFLICTING_REQUEST,
        CORRELATION_VIOLATION,
        INVALID_BRANCH_CONDITION,
        INVALID_EXPRESSION_VALUE,
        INVALID_VARIABLES,
        JOIN_FAILURE,
        MISMATCHED_ASSIGNMENT,
        MISSING_REPLY,
        MISSING_REQUEST,
        SCOPE_INITIALIZATION_FAILURE,
        SELECTION_FAILURE,
        SUB_LANGUAGE_FAULT,
        UNINITIALIZED_PARTNER_ROLE,
        UNINITIALIZED_VARIABLE,
        UNSUPPORTED_REFERENCE,
        XSLT_INVALID_SOURCE,
        XSLT_STYLESHEET_NOT_FOUND,
    }
)


class FlowFault(Exception):
    """A fault that is being raised to its activity."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.name, fault.message)
        self.fault = fault


def flow_fault(name: str, message: str, data: Value = None) -> FlowFault:
    return FlowFault(Fault(name=name, category=Category.FLOW, message=message, data=data))


def fault_value(fault: Fault) -> dict[str, Value]:
    """The content of a handler's fault variable."""
    return {
        "name": fault.name,
        "category": fault.category.value,
        "message": fault.message,
        "data": fault.data,
        "exit_code": fault.exit_code,
        "signal": fault.signal,
    }
