"""What an item of a flow in BPEL waits for, in words: which message, with which values, at which address; or which
partner."""

from collections.abc import Iterator
from urllib.parse import quote

from mendflow.core.engine.messages import CallPartner
from mendflow.core.engine.state import Case, Item, PickInstance, ReceiveItem
from mendflow.core.engine.xml.correlation import MARK, holder_of
from mendflow.core.engine.xml.listeners import listener_activity, message_of, outer_sets
from mendflow.core.soap import split_name
from mendflow.core.soap.references import OWN_SCHEME, address_of
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.messaging.calls import IN_PROCESS


def waits_for(live: LiveCase, item: str, url: str) -> str:
    """Empty if it is not such an item. `url` is the address of this server."""
    case = live.case
    instance = case.instances.get(case.index.items.get(item, 0)) if live.flow.xml is not None else None
    if isinstance(instance, ReceiveItem | PickInstance):
        heard = list(_expected_messages(case, instance))
        at = f", at {url}/soap/flows/{quote(live.flow.name, safe='')}" if url else ""
        return f"waits for {' or '.join(heard)}{at}" if heard else ""
    if isinstance(instance, Item) and isinstance(instance.order, CallPartner) and instance.order.port_type:
        order, address = instance.order, address_of(instance.order.reference)
        port = address.startswith(IN_PROCESS) and not address.startswith(OWN_SCHEME)
        case_of = f": case {live.id}.{order.serial}" if port else ""
        return f"waits for the answer to {order.operation} of {order.partner}, at {address}{case_of}"
    return ""


def _expected_messages(case: Case, instance: ReceiveItem | PickInstance) -> Iterator[str]:
    """Each message that it listens for, with the values that it must have."""
    for channel, key in instance.listening:
        activity, env = listener_activity(case, case.listeners[channel][key])
        how = message_of(activity)
        values = [value for each in outer_sets(activity) for value in _values(case, env, each.set)]
        yield f"{how.operation} of {how.partner_link}" + (f" with {', '.join(values)}" if values else "")


def _values(case: Case, env: int, name: str) -> list[str]:
    home, properties = holder_of(case, env, name)
    found = home.variables.get(f"{MARK}{name}")
    values = found if isinstance(found, list) else []
    return [f"{split_name(each)[1]} = {value}" for each, value in zip(properties, values, strict=False)]
