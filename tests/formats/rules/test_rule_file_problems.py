"""What is wrong with a rule file: all of it at once, each with its place."""

import pytest

from mendflow.core.model.errors import BadRules
from mendflow.formats.rules import read_rules


def complaints(text: str) -> list[str]:
    with pytest.raises(BadRules) as caught:
        read_rules(text, "r.yaml")
    return [str(problem).removeprefix("r.yaml:").strip() for problem in caught.value.problems]


def test_everything_is_told_at_once_with_its_place_and_what_was_meant() -> None:
    text = """abrt: []
abort:
  align:
    - if: fault.type == "x" &&
      do: nothng
    - if: falt.type == "x"
      doo: nothing
    - do: nothing
    - if: 3
      at: soon
  sort: nothing
timeout: 7
exlets:
  nothing:
    - suspend: cas
    - notify: ${{ jbo.id }}
"""
    assert complaints(text) == [
        "1:1: a rule file has no key `abrt` (did you mean `abort`?)",
        '4:31: in the condition `fault.type == "x" &&`: the expression ends too early',
        "5:11: there is no exlet `nothng` (did you mean `nothing`?)",
        "6:11: a rule knows no `falt`; what was registered is `sources.falt` (did you mean `fault`?)",
        "7:7: a rule has no key `doo` (did you mean `do`?)",
        "8:7: `if` is missing: when the rule holds",
        '9:11: a condition (such as fault.type == "oom") is expected here, not the number 3',
        "10:11: a moment (such as 2030-01-31T08:00:00Z) is expected here",
        "11:9: a list of rules is expected here, not the text `nothing`",
        "12:10: `timeout` is a list of rules, or a map of such lists by task, not the number 7",
        "15:16: one of item, case, all-cases, ancestors (or nothing, for item) is expected here, not the text `cas` "
        "(did you mean `case`?)",
        "16:19: there is no variable `jbo` here (did you mean `job`?)",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("- a", "a rule file is a map with exceptions"),
        ("abort:\n  - if: jobs.a.outputs.n > 3", "`jobs` is for flows"),
        ("abort: []", "needs at least one rule"),
        ("abort:\n  - if: true\n    id: 3\n  - if: true\n    id: 3", "two rules of this tree have the id 3"),
        ("abort:\n  - if: true\n    cornerstone: 3", "a map, or its JSON as a text, is expected here"),
        ("abort:\n  - if: true\n    cornerstone: '{'", "a map, or its JSON as a text, is expected here"),
        ("abort:\n  a:\n    root: 1\n    rules:\n      - {id: 1, if: true, then: 4}", "rule 4 is missing"),
        (
            "abort:\n  a:\n    root: 1\n    rules:\n      - {id: 1, if: true}\n      - {id: 2, if: true}",
            "hangs on no other",
        ),
        ("abort:\n  a:\n    rules: 3", "`root` is missing"),
        ("selection:\n  a:\n    - if: true\n      do:\n        - suspend: case", "concludes a flow: give its name"),
        ("exlets: 3", "`exlets` is a map of exlets by name"),
        ("exlets:\n  a: {model: '{}'}", "this is no flow"),
        ("exlets:\n  a: 3", "an exlet is a list of steps"),
        ("abort:\n  '':\n    - if: true", "a task has a name"),
        ("abort:\n  - if: ${{ a }} ${{ b }}", "put all of it into one"),
        ("abort:\n  - if: l.all(x, l.all(y, l.all(z, true)))", "lists inside lists"),
        ("abort: !python/name:os.system", "must be in quotes"),
        ("at: 2026-01-01T00:00:00\nabort:\n  - if: true", "a moment"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_a_sentence(text: str, said: str) -> None:
    assert said in "\n".join(complaints(text))


def test_exceptions_without_end_are_refused_before_they_are_read() -> None:
    text = "abort:\n" + "".join(
        f"{' ' * (2 + 2 * level)}- if: true\n{' ' * (4 + 2 * level)}except:\n" for level in range(40)
    )
    assert "more than 30 deep" in "\n".join(complaints(text + " " * 82 + "- if: true\n"))
