"""Rule sets of every shape, for the formats that must lose nothing of them."""

from hypothesis import strategies as st

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, Call, Empty, Flow, JobActivity, PrimitiveStep, Wait
from mendflow.core.model.ids import FlowName
from mendflow.core.model.repair import CASE_LEVEL, ExceptionType, Primitive
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.formats.yaml.exlets import context_of, exlet_flow
from tests.core.rules.trees import CONDITIONS, trees

TEXTS = st.one_of(
    st.sampled_from(
        ["", "jobs grow", "1e5", "0x10", "null", "yes", "12:30", "- a", "a: b", "<<", "*", "&x", "'q'", '"q"']
    ),
    st.sampled_from(
        ["two\nlines", " blanks ", "tail\n", "# no", "é✓", "tab\there", "\u0085", "x" * 300, "a ?> b", "]]>", "<&>"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12),
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXTS,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
CONTEXTS = st.dictionaries(st.one_of(st.sampled_from(["case", "item", "job", "data"]), TEXTS), VALUES, max_size=4)

AIMED = st.builds(
    lambda do, target: {"do": do, "target": target},
    st.sampled_from([Primitive.SUSPEND, Primitive.CONTINUE, Primitive.REMOVE]),
    st.sampled_from(["item", "case", "all-cases", "ancestors"]),
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "resources": st.fixed_dictionaries(
            {}, optional={"memory_bytes": st.integers(1, 10**12), "site": st.just("york")}
        ),
        "wait_ms": st.integers(0, 10**6),
        "domain": st.just("north"),
        "level": st.integers(0, 3),
        "message": TEXTS,
        "odd": VALUES,
    },
)
CHANGING = st.builds(
    lambda do, settings: {"do": do, "settings": settings},
    st.sampled_from([Primitive.RESUBMIT, Primitive.RETRY_LATER, Primitive.RESTART, Primitive.NOTIFY, Primitive.FAIL]),
    SETTINGS,
)


@st.composite
def exlets(draw: st.DrawFn, name: str) -> Flow:
    steps: list[Activity] = []
    for count in range(1, draw(st.integers(1, 4)) + 1):
        called = draw(st.sampled_from([f"step-{count}", f"named-{count}"]))
        kind = draw(st.integers(0, 5))
        if kind <= 1:
            steps.append(PrimitiveStep(name=called, **draw(AIMED)))
        elif kind == 2:
            steps.append(PrimitiveStep(name=called, **draw(CHANGING)))
        elif kind == 3:
            steps.append(Call(name=called, flow="worklet", inputs=draw(st.dictionaries(st.just("n"), VALUES))))
        elif kind == 4:
            steps.append(JobActivity(name=called, command="echo hi", when=Expr("true")))
        else:
            steps.append(Wait(name=called, duration=3) if draw(st.booleans()) else Empty(name=called))
    variables = context_of(draw(st.sets(st.sampled_from(["job", "fault"]))))
    return exlet_flow(name, steps, variables=variables)


@st.composite
def rules_in(draw: st.DrawFn, type: ExceptionType, names: list[str]) -> RuleTree:
    tree = draw(trees(most=10))
    shift = draw(st.sampled_from([0, 0, 1, 7]))
    moved = {
        id + shift: Rule(
            id=id + shift,
            condition=rule.condition,
            exlet=draw(st.sampled_from(["", *names])) if type is not ExceptionType.SELECTION else draw(FLOWS),
            on_true=None if rule.on_true is None else rule.on_true + shift,
            on_false=None if rule.on_false is None else rule.on_false + shift,
            passive=rule.passive,
            author=draw(TEXTS),
            at=draw(st.sampled_from([0, 1, 1_767_323_045_123, 1_767_323_045_000, 10**17])),
            note=draw(TEXTS),
            cornerstone=draw(st.one_of(st.none(), CONTEXTS)),
            kept=draw(st.one_of(st.just({}), st.just({"other-tool": {"a": 1}}))),
        )
        for id, rule in tree.rules.items()
    }
    return RuleTree(moved, tree.root + shift)


FLOWS = st.sampled_from(["", "flow-a", "UID_1-2"])


@st.composite
def rule_sets(draw: st.DrawFn) -> RuleSet:
    names = draw(st.lists(st.sampled_from(["more", "abort.1", "case-pre.2", "less memory"]), unique=True))
    made = {name: draw(exlets(name)) for name in names}
    found: dict[ExceptionType, dict[str, RuleTree]] = {}
    for type in draw(st.lists(st.sampled_from(list(ExceptionType)), unique=True, max_size=3)):
        tasks = (
            [""]
            if type in CASE_LEVEL
            else draw(st.lists(st.sampled_from([DEFAULT_RULES, "align", "Do Show", "1"]), min_size=1, unique=True))
        )
        found[type] = {task: draw(rules_in(type, names)) for task in tasks}
    return RuleSet(
        name=draw(st.sampled_from(["flow", DEFAULT_RULES, "odd name"])),
        version=draw(st.integers(0, 99)),
        trees=found,
        exlets=made,
        author=draw(TEXTS),
        at=draw(st.sampled_from([0, 1_767_323_045_123])),
        note=draw(TEXTS),
        kept=draw(st.one_of(st.just({}), st.just({"other-tool": [1, None]}))),
    )


EMPTY = Flow(name=FlowName("x"), body=Empty(name="x"))
__all__ = ["CONDITIONS", "EMPTY", "rule_sets"]
