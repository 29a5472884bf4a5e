"""A variable that only some branch of a script sets counts as not set after it."""

import pytest

from mendflow.core.results.script_dependencies import first_doubt


@pytest.mark.parametrize(
    "script",
    [
        "if [ ! -s in.txt ]; then MODE=empty; fi\necho $MODE",
        "if true; then MODE=1; else echo x; fi; echo $MODE",
        "if true; then MODE=1; elif false; then echo y; else MODE=2; fi; echo $MODE",
        "if true; then :; elif false; then MODE=1; else MODE=2; fi; echo $MODE",
        "if true\nthen\n  if false; then MODE=1; fi\nelse\n  MODE=2\nfi\necho $MODE",
        "if true; then echo $MODE; else MODE=1; fi",
        "[ -s in.txt ] && MODE=1; echo $MODE",
        "[ -s in.txt ] || MODE=1\necho $MODE",
        "[ -s in.txt ] &&\n  MODE=1\necho $MODE",
        "[ -s in.txt ] && { MODE=1; echo x; }; echo $MODE",
        "true && MODE=1 || echo $MODE",
        "for f in $(ls); do MODE=$f; done; echo $MODE",
        "for MODE in $(ls); do echo x; done; echo $MODE",
        "while read -r line; do MODE=$line; done < in.txt; echo $MODE",
        "until true; do MODE=1; done; echo $MODE",
        "case $1 in a) MODE=1;; b) MODE=2;; esac; echo $MODE",
        "case $1 in\n  a)\n    MODE=1\n    ;;\n  *)\n    echo x\n    ;;\nesac\necho $MODE",
        "case $1 in a|b) echo $MODE;; *) MODE=1;; esac",
        "cat in.txt | read MODE; echo $MODE",
        "cat in.txt | while read MODE; do :; done; echo $MODE",
        "echo x | { MODE=1; }; echo $MODE",
        "(MODE=1; echo $MODE); echo $MODE",
        "MODE=1 & echo $MODE",
        "f() { MODE=1; }; echo $MODE",
        "f() { if true; then MODE=1; fi; }; f; echo $MODE",
        "bash -c 'if true; then MODE=1; fi; echo $MODE'",
    ],
)
def test_what_only_some_branch_sets_is_seen_where_it_is_read(script: str) -> None:  # DU-2
    assert first_doubt(script, "", frozenset()).startswith("it uses $MODE, which it does not set itself")


@pytest.mark.parametrize(
    "script",
    [
        "MODE=0; if true; then MODE=1; fi; echo $MODE",
        "if true; then MODE=1; echo $MODE; fi",
        "if true; then MODE=1; else MODE=2; fi; echo $MODE",
        "if a; then MODE=1; elif b; then MODE=2; else MODE=3; fi\necho $MODE",
        "if a; then MODE=1; else echo bad >&2; exit 1; fi; echo $MODE",
        "if MODE=$(cat in.txt); then echo x; fi; echo $MODE",
        "MODE=$(cat in.txt) || exit 1; echo $MODE",
        "MODE=$(cat in.txt) || MODE=1; echo $MODE",
        "[ -s in.txt ] && MODE=1 || MODE=2; echo $MODE",
        "[ -s in.txt ] && MODE=1 || { echo bad; exit 1; }; echo $MODE",
        "die() { echo bad; exit 1; }\n[ -s in.txt ] && MODE=1 || die\necho $MODE",
        "true && MODE=1 && echo $MODE",
        "true &&\n  MODE=1 &&\n  echo $MODE",
        "true && (echo x)\nMODE=1\necho $MODE",
        "true | cat\nMODE=1; echo $MODE",
        "for MODE in a b c; do echo $MODE; done; echo $MODE",
        "for MODE in *.txt; do echo $MODE; done; echo $MODE",
        "for ((MODE = 0; MODE < 3; MODE++)); do echo $MODE; done; echo $MODE",
        "while read -r MODE; do echo $MODE; done < in.txt; echo $MODE",
        "case $1 in a) MODE=1;; *) MODE=2;; esac; echo $MODE",
        "case $1 in\n  (a|b) MODE=1 ;;\n  *)\n    echo bad\n    exit 1\nesac\necho $MODE",
        "{ MODE=1; }; echo $MODE",
        "f() { MODE=1; }; f; echo $MODE",
        "function f { MODE=1; }\nf\necho $MODE",
        "parts=(a b)\nMODE=1; parts+=(\n  c\n)\necho $MODE ${parts[@]}",
        "echo x & MODE=1; echo $MODE",
        "set -e; trap 'rm -f x' EXIT; MODE=$(wc -l < in.txt); if ((MODE > 3)); then exit 3; fi; echo $MODE",
        'while true; do MODE=1; if [ "$MODE" ]; then break; fi; done',
        "[[ $1 =~ (a|b) ]] && echo x\nMODE=1\necho $MODE",
        "MODE=1; f() { echo $MODE; }; f | sort; (f; echo $MODE)",
    ],
)
def test_what_each_branch_sets_is_known_after_it(script: str) -> None:  # DU-2
    assert first_doubt(script, "", frozenset()) == ""
