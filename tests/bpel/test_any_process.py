"""Whatever is made of BPEL's activities comes to an end, and to the same one if everything is lost on its way."""

import re
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.bpel.documents import (
    buy,
    catch,
    flow,
    for_each,
    handlers,
    note,
    process,
    scope,
    sequence,
    sources,
    targets,
    throw,
    traced,
    undoing,
    wait,
)
from tests.bpel.stage import Stage
from tests.examples import examples

NAMES = st.sampled_from("ab")
LEAVES = st.one_of(
    st.sampled_from("xyz").map(note),
    st.sampled_from(["p:a", "p:b", "bpel:selectionFailure"]).map(throw),
    st.integers(0, 3).map(wait),
    st.sampled_from([1, 5, 6]).map(buy),
    st.just("<empty/>"),
    st.just("<exit/>"),
)
IN_HANDLERS = st.one_of(LEAVES, st.just("<compensate/>"))
CAUGHT = st.one_of(IN_HANDLERS, st.just("<rethrow/>"))


def together(steps: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(steps, min_size=1, max_size=3).map(lambda found: sequence(*found))


@st.composite
def linked(draw: st.DrawFn, steps: st.SearchStrategy[str]) -> str:
    """Branches side by side, of which one may wait for another."""
    status = draw(st.sampled_from(["", "false()"]))
    join = draw(st.sampled_from(["", "not($l)"]))
    suppress = draw(st.sampled_from(["yes", "no"]))
    first = f"<sequence>{sources(f'l:{status}' if status else 'l')}{draw(steps)}</sequence>"
    then = f"<sequence>{targets('l', join=join)}{draw(steps)}</sequence>"
    return flow(then, draw(steps), first, links="l", attributes=f'suppressJoinFailure="{suppress}"')


@st.composite
def scoped(draw: st.DrawFn, steps: st.SearchStrategy[str]) -> str:
    """A scope with some of all that a scope can have."""
    inside = []
    if draw(st.booleans()):
        catches = [catch(f"p:{name}", draw(together(CAUGHT))) for name in draw(st.sets(NAMES))]
        inside.append(handlers(*catches, all=draw(together(CAUGHT))))
    if draw(st.booleans()):
        inside.append(undoing(draw(together(IN_HANDLERS))))
    if draw(st.booleans()):
        inside.append(f"<terminationHandler>{draw(together(IN_HANDLERS))}</terminationHandler>")
    if draw(st.booleans()):
        alarm = f"<onAlarm><for>'PT{draw(st.integers(0, 3))}S'</for>{scope(draw(steps))}</onAlarm>"
        inside.append(f"<eventHandlers>{alarm}</eventHandlers>")
    return scope(*inside, draw(steps))


def structures(steps: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        together(steps),
        st.lists(steps, min_size=1, max_size=3).map(lambda found: flow(*found)),
        linked(steps),
        scoped(steps),
        st.tuples(steps, st.booleans()).map(lambda drawn: for_each(drawn[0], last="2", parallel=drawn[1])),
    )


BODIES = st.recursive(LEAVES, structures, max_leaves=12)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(BODIES)
def test_whatever_is_put_together_ends_and_ends_the_same(body: str) -> None:
    text = process(traced(body))
    with tempfile.TemporaryDirectory() as folder:
        outcome = Stage(Path(folder), text, forgetful=False).spell()
        assert re.fullmatch(r"[xyz]*|!\w+|ended", outcome), outcome
        assert Stage(Path(folder), text).spell() == outcome
