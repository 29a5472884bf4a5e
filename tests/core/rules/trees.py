"""Rule sets, small and random, as tests of rules want them."""

from collections.abc import Mapping

from hypothesis import strategies as st

from mendflow.core.expressions import ExpressionError, evaluate
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Empty, Flow
from mendflow.core.model.ids import CaseId, FlowName, Instant
from mendflow.core.model.repair import Conclusion, Decision, DecisionState, ExceptionType
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.core.model.values import Value

ABORT = ExceptionType.ABORT

WORDS = ("oom", "disk", "node", "net", "exit")
CONDITIONS = st.one_of(
    st.sampled_from(WORDS).map(lambda word: f'fault.type == "{word}"'),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(
        lambda words: "fault.type in [" + ", ".join(f'"{word}"' for word in words) + "]"
    ),
    st.tuples(st.sampled_from(["<", "<=", ">", ">="]), st.integers(0, 6)).map(
        lambda two: f"job.attempts {two[0]} {two[1]}"
    ),
    st.tuples(st.sampled_from(WORDS), st.integers(0, 6)).map(
        lambda two: f'job.attempts == {two[1]} && fault.type != "{two[0]}"'
    ),
    st.tuples(st.sampled_from(WORDS), st.integers(0, 6)).map(
        lambda two: f'fault.type == "{two[0]}" || {two[1]} < job.attempts'
    ),
    st.sampled_from(
        ["true", "false", "job.gone == 1", "has(job.peak) && job.peak > 3", "job.peak == null", "job.peak == true"]
    ),
    st.tuples(st.sampled_from(WORDS), st.integers(0, 6)).map(
        lambda two: f"fault.type == '{two[0]}' && items.exists(i, i == 'failed') && job.attempts <= {two[1]}"
    ),
    st.sampled_from(["items.exists(i, i == 'failed')", "fault.type.startsWith('n')", "1 == job.peak", "job.peak >= 1"]),
)
CONTEXTS = st.fixed_dictionaries(
    {
        "fault": st.fixed_dictionaries({}, optional={"type": st.sampled_from([*WORDS, "other", 3, None])}),
        "job": st.fixed_dictionaries(
            {},
            optional={
                "attempts": st.one_of(st.integers(0, 7), st.sampled_from([1.0, 2.5, "3", True, None])),
                "peak": st.sampled_from([None, True, 1, 1.0, 4, "x", [1]]),
            },
        ),
    },
    optional={"items": st.lists(st.sampled_from(["completed", "failed"]))},
)


@st.composite
def trees(draw: st.DrawFn, most: int = 40, passive: bool = True) -> RuleTree:
    """A tree grown at random: each rule hangs on a free side of one before it, mostly the false one."""
    count = draw(st.integers(1, most))
    rules: dict[int, Rule] = {}
    free: list[tuple[int, str]] = []
    for id in range(count):
        rules[id] = Rule(
            id=id,
            condition=draw(CONDITIONS),
            exlet=draw(st.sampled_from(["", "a", "b", "c", "d"])),
            passive=passive and draw(st.integers(0, 6)) == 0,
        )
        if free:
            parent, side = free.pop(draw(st.one_of(st.just(len(free) - 1), st.integers(0, len(free) - 1))))
            links: dict[str, Value] = {side: id}
            old = rules[parent]
            rules[parent] = Rule(
                id=parent,
                condition=old.condition,
                exlet=old.exlet,
                passive=old.passive,
                on_true=links.get("on_true", old.on_true),
                on_false=links.get("on_false", old.on_false),
            )
        free += [(id, "on_true"), (id, "on_false")]
    return RuleTree(rules)


def one_tree(tree: RuleTree, task: str = DEFAULT_RULES, type: ExceptionType = ABORT) -> RuleSet:
    exlets = {rule.exlet: exlet(rule.exlet) for rule in tree.rules.values() if rule.exlet}
    return RuleSet(name="flow", version=3, trees={type: {task: tree}}, exlets=exlets)


def exlet(name: str) -> Flow:
    return Flow(name=FlowName(name), body=Empty(name="nothing"))


def row(*rules: tuple[str, str]) -> RuleTree:
    """Alternatives in order, numbered from 1: condition and exlet each."""
    made = {
        id: Rule(id=id, condition=condition, exlet=concluded, on_false=id + 1 if id < len(rules) else None)
        for id, (condition, concluded) in enumerate(rules, 1)
    }
    return RuleTree(made, 1)


def holds(condition: str, context: Mapping[str, Value]) -> bool:
    """What the library says of a condition."""
    try:
        return evaluate(Expr(condition), lambda name: context[name]) is True
    except ExpressionError:
        return False


def as_the_paper_says(tree: RuleTree, context: Mapping[str, Value]) -> tuple[int | None, list[int]]:
    """The rule that decides and all rules asked: from the root along the branches, each condition evaluated."""
    asked: list[int] = []
    last: int | None = None
    each: int | None = tree.root
    while each is not None:
        rule = tree.rules[each]
        held = not rule.passive and holds(rule.condition, context)
        asked.append(each)
        last = each if held else last
        each = rule.on_true if held else rule.on_false
    return last, asked


def decision(id: str, context: dict[str, Value], exlet: str = "", state: DecisionState = "ignored") -> Decision:
    return Decision(
        id=id,
        case=CaseId("case-1"),
        flow="flow",
        type=ABORT,
        at=Instant(1),
        state=state,
        task="align",
        exlet=exlet,
        context=context,
    )


def rules_asked(tree: RuleTree, conclusion: Conclusion) -> list[int]:
    """Every rule that was asked on the way to a conclusion, in order, those without a line in the trail among them."""
    held = {tested.rule for tested in conclusion.trail if tested.held}
    found: list[int] = []
    each: int | None = tree.root if tree.rules else None
    while each is not None:
        rule = tree.rules[each]
        found.append(each)
        each = rule.on_true if each in held else rule.on_false
    return found
