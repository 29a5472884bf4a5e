"""XPath here and XPath in lxml give the same: the same nodes, the same values, for any document and any expression that
can be made of the grammar. What lxml is known to do otherwise than the specification says is left out of the grammar:
how it writes numbers that are not whole, ids, and what follows an attribute within its element."""

import math
from typing import Any

from hypothesis import given, reject
from hypothesis import strategies as st
from lxml import etree

from mendflow.core.expressions import xpath
from mendflow.core.expressions.xpath.axes import AXES
from mendflow.core.model.expr import Expr
from mendflow.core.xml.reader import read
from mendflow.core.xml.tree import Attribute, Element, Node, Text, XmlDocument, position

NAMESPACES = (("p", "urn:p"), ("q", "urn:q"))
VALUES: dict[str, Any] = {"n": 2.0, "s": "b", "yes": True}
Place = tuple[object, ...]

names = st.sampled_from(["a", "b", "p:a", "q:b"])
words = st.sampled_from(["1", "2", " 3 ", "-4.5", "b", "x y", "", "1", "p:a", " \t "])
aside = st.sampled_from(["<!--c-->", "<!--1-->", "<?go 2?>", "<?b?>"])
attributes = st.dictionaries(st.sampled_from(["x", "y", "p:x", "xml:lang"]), words, max_size=3).map(
    lambda given: "".join(f' {name}="{value.strip()}"' for name, value in given.items())
)
defaults = st.sampled_from(["", "", "", ' xmlns="urn:q"', ' xmlns=""', ' xmlns:q="urn:other"'])


def _element(content: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        lambda name, declared, given, inner: f"<{name}{declared}{given}>{''.join(inner)}</{name}>",
        names,
        defaults,
        attributes,
        st.lists(content, max_size=4),
    )


documents = st.builds(
    lambda before, given, inner, times: (
        f'{before}<a xmlns:p="urn:p" xmlns:q="urn:q"{given}>{"".join(inner) * times}</a>'
    ),
    st.sampled_from(["", "<!--first-->", "<?first?>"]),
    attributes,
    st.lists(st.recursive(st.one_of(words, aside), _element, max_leaves=12), max_size=5),
    st.sampled_from([1, 1, 2, 5]),
)

tests = st.sampled_from(
    ["a", "b", "p:a", "q:*", "*", "node()", "node()", "text()", "comment()", "processing-instruction()"]
)
axes = st.sampled_from(sorted(set(AXES) - {"attribute", "namespace", "child", "following"}))
ends = st.sampled_from(
    ["/@x", "/@*", "/@p:x", "/attribute::y", "//@x", "/@x/..", "/@*/ancestor::*", "/@*/preceding::a"]
)


leaves = st.sampled_from(["1", "2", "0", "3.5", "'b'", "'1'", "''", "$n", "$s", "$yes", "true()", "-7"])
counted = st.sampled_from(["position()", "last()", "@x", "@x=1", "position()=last()", "last()-1", ".=2", "not(b)"])
compared = st.sampled_from(["=", "=", "!=", "<", "<=", ">", ">="])
sides = st.sampled_from(
    [
        *(
            "$n",
            "$n+1",
            "2",
            "1.5",
            "0",
            "-1",
            "99",
            "'2'",
            "'x'",
            "$s",
            "true()",
            "$yes",
            "0 div 0",
            "1 div 0",
            "-1 div 0",
        ),
        *(
            "last()",
            "last()-1",
            "last() div 2",
            "//b",
            "$v/*/@x",
            "count($v/*)",
            "count(*)",
            "@x",
            "@y",
            ".",
            "b",
            "@p:x",
        ),
    ]
)
"""What a predicate compares, or is: the same for all nodes, for all in a list, or another for each."""

placed = st.one_of(
    sides,
    st.builds("{}{}{}".format, st.sampled_from(["position()", "@x", "@p:x", "."]), compared, sides),
    st.builds("{}{}{}".format, sides, compared, st.sampled_from(["position()", "@x", "@p:x"])),
    st.builds("{} {} {}{}{}".format, sides, st.sampled_from(["and", "or"]), sides, compared, sides),
)
operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "+", "-", "*", " div ", " mod ", " and ", " or "])
of_nodes = st.sampled_from(
    [
        *("count({})", "sum({})", "number({})", "string-length({})", "boolean({})", "not({})", "string({})"),
        *("local-name({})", "namespace-uri({})", "name({})", "normalize-space({})"),
    ]
)
of_values = st.sampled_from(
    [
        *("contains({},{})", "starts-with({},{})", "substring-before({},{})", "substring-after({},{})"),
        *("substring('abcde',{},{})", "translate({},'ab1',{})", "substring({},{})", "concat({},'-',string({}))"),
        *("floor({})", "ceiling({})", "round({})", "-{}", "({})", "lang(string({}))"),
    ]
)


@st.composite
def steps(draw: st.DrawFn, depth: int) -> str:
    axis = draw(st.one_of(st.just(""), axes.map("{}::".format), st.just("following::")))
    if not axis and draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from([".", "..", "*"]))
    held = [draw(predicates(depth)) for _ in range(draw(st.integers(0, 2)))] if depth else []
    return f"{axis}{draw(tests)}{''.join(map('[{}]'.format, held))}"


@st.composite
def paths(draw: st.DrawFn, depth: int) -> str:
    """One from the root or from a variable, one from here, one that is picked from, or two together."""
    inner = "".join(
        draw(st.sampled_from(["/", "//"])) + draw(steps(depth)) for _ in range(draw(st.integers(0, 3 if depth else 1)))
    )
    whole = draw(st.sampled_from(["/a", "//*", "//a", "$v", "//text()/.."])) + inner
    match draw(st.sampled_from(["whole", "end", "relative", "picked", "joined"] if depth else ["whole", "relative"])):
        case "end":
            return whole + draw(ends)
        case "relative":
            return draw(steps(depth)) + inner
        case "picked":
            return f"({whole})[{draw(predicates(depth))}]"
        case "joined":
            return f"{whole}|{draw(paths(depth - 1))}"
    return whole


@st.composite
def predicates(draw: st.DrawFn, depth: int) -> str:
    """Positions stand here alone: outside of predicates lxml knows none."""
    simple = st.one_of(leaves, tests, counted)
    if draw(st.booleans()):
        return draw(simple)
    return draw(st.one_of(joined(simple), paths(depth - 1)))


@st.composite
def joined(draw: st.DrawFn, parts: st.SearchStrategy[str]) -> str:
    first, second = draw(parts), draw(parts)
    if draw(st.booleans()):
        return draw(of_values).format(first, second)
    return draw(st.sampled_from(["{}{} {}", "({}{} {})"])).format(first, draw(operators), second)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> str:
    if draw(st.booleans()):
        return draw(paths(2))
    nodes = paths(depth)
    part = st.one_of(leaves, nodes, st.builds(lambda call, path: call.format(path), of_nodes, nodes))
    return draw(joined(st.one_of(part, joined(part))))


def place_there(found: Any) -> Place:
    """Where a node of lxml's stands, in words that both know."""
    if not isinstance(found, str):
        return ("node", found.getroottree().getpath(found))
    parent = found.getparent()  # type: ignore[attr-defined]  # lxml's texts know where they stand
    path = parent.getroottree().getpath(parent)
    if found.is_attribute:  # type: ignore[attr-defined]  # as above
        return ("attribute", path, found.attrname)  # type: ignore[attr-defined]  # as above
    return ("text" if found.is_text else "tail", path)  # type: ignore[attr-defined]  # as above


def place_here(node: Node, paths: dict[int, str]) -> Place:
    if isinstance(node, Attribute):
        return ("attribute", paths[id(node.parent)], node.name)
    if type(node) is not Text:
        return ("node", paths[id(node)])
    assert node.parent is not None
    at = position(node)
    return ("tail", paths[id(node.parent.children[at - 1])]) if at else ("text", paths[id(node.parent)])


def paths_of(document: XmlDocument, tree: Any) -> dict[int, str]:
    """The path that lxml knows each of our nodes by: both trees have the same nodes in the same order."""
    ours = [node for node in document.descendants() if type(node) is not Text]
    theirs = [*reversed(list(tree.itersiblings(preceding=True))), *tree.iter(), *tree.itersiblings()]
    assert len(ours) == len(theirs)
    return {id(a): b.getroottree().getpath(b) for a, b in zip(ours, theirs, strict=True)}


def here(text: str, root: Element, context: Node) -> xpath.XValue | None:
    world = xpath.XPathEnvironment({**VALUES, "v": root}.__getitem__)
    try:
        return xpath.evaluate(Expr(text, "xpath", NAMESPACES), world, context)
    except xpath.TooMuchXPathWork:
        reject()  # lxml has no bound; that ours holds is shown elsewhere
    except xpath.XPathError:
        return None


def there(text: str, context: Any) -> Any:
    root = context.getroottree().getroot()
    try:
        return context.xpath(text, namespaces=dict(NAMESPACES), v=root, **VALUES)
    except etree.XPathError:
        return None


def same(ours: xpath.XValue | None, theirs: Any, paths: dict[int, str]) -> bool:
    if isinstance(ours, list):
        assert isinstance(theirs, list)
        assert len({id(node) for node in ours}) == len(ours)
        shown = [place_here(node, paths) for node in ours if not isinstance(node, XmlDocument)]
        return len(shown) == len(theirs) and set(shown) == set(map(place_there, theirs))
    if isinstance(ours, float) and math.isnan(ours):
        return isinstance(theirs, float) and math.isnan(theirs)
    return isinstance(theirs, str | float | bool | None) and type(ours) in type(theirs).__mro__ and ours == theirs


@given(documents, expressions(), st.integers(0, 30))
def test_xpath_is_what_lxml_says_it_is(text: str, expression: str, pick: int) -> None:  # FM-1
    root, tree = read(text), etree.fromstring(text)
    assert root.document is not None
    elements = [node for node in root.document.descendants() if isinstance(node, Element)]
    theirs = list(tree.iter("*"))
    at = pick % len(elements)
    mine, other = here(expression, root, elements[at]), there(expression, theirs[at])
    assert same(mine, other, paths_of(root.document, tree)), (mine, other)


@given(documents, st.lists(placed, min_size=1, max_size=3), st.sampled_from(["{}", "{}/@x", "count({})", "({})[$n]"]))
def test_nodes_are_picked_by_position_and_by_attribute_as_lxml_picks_them(
    text: str, asked: list[str], shape: str
) -> None:  # FM-1
    root, tree = read(text), etree.fromstring(text)
    assert root.document is not None
    held = "".join(map("[{}]".format, asked))
    for step in ("b", "p:a", "*", "node()", "*/preceding-sibling::*", "*//b"):
        expression = shape.format(f"$v/{step}{held}")
        mine, other = here(expression, root, root), there(expression, tree)
        assert same(mine, other, paths_of(root.document, tree)), (expression, mine, other)


@given(documents, expressions())
def test_nodes_come_once_and_in_document_order(text: str, expression: str) -> None:
    root = read(text)
    found = here(expression, root, root)
    if isinstance(found, list):
        order = [id(node) for node in walked(root)]
        places = [order.index(id(node)) for node in found if not isinstance(node, XmlDocument)]
        assert places == sorted(set(places))


def walked(root: Element) -> list[Node]:
    assert root.document is not None
    found: list[Node] = []
    for node in root.document.descendants():
        found.append(node)
        if isinstance(node, Element):
            found += node.attributes.values()
    return found
