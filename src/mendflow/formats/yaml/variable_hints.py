"""How variables in expressions are said here, by the words that people bring from other tools."""

from typing import Final

from mendflow.formats.hints import Hints, hints

VARIABLE_HINTS: Final[Hints] = hints(
    ("env", "a command reads its environment itself: `$NAME`"),
    ("secrets vars", "set it in the environment of the pilot, and read it in the command as `$NAME`"),
    ("params param config args parameters workflow", "what the flow is given is `inputs.NAME`"),
    (
        "needs steps tasks task rules step",
        "the result of a job is `jobs.NAME.outputs.KEY`, and its files `jobs.NAME.files.FILE`",
    ),
    (
        "matrix wildcards each",
        "the element of a loop has its own name: `${{ sample }}` after `for-each: {sample: [...]}`",
    ),
    ("item index", "`item` and `index` are there in a job with `for-each:`"),
    (
        "case run github job runner context",
        "a command finds its case, its job and its attempt as `$MENDFLOW_CASE`, `$MENDFLOW_JOB` and "
        "`$MENDFLOW_ATTEMPT`",
    ),
    ("fault error exception", "`fault` is there in what `on-failure:` and `catch:` do"),
    (
        "input output threads resources log",
        "files stand under `inputs:` and `files:`, and the command names their paths",
    ),
)
"""For names in expressions that nothing has defined."""

WORDS_OF_PYTHON: Final = {"True": "true", "False": "false", "None": "null", "nil": "null", "NULL": "null"}
