"""Words that people bring from other tools for retries and their causes."""

from typing import Final

from mendflow.formats.hints import Hints, hints

RETRY_WORDS: Final[Hints] = hints(
    (
        "max count limit number retries max-retries amount retry n",
        "times",
    ),
    ("exit-codes exit-code codes code if when cause causes errors error only exceptions on-exit-codes", "on"),
    ("delay interval sleep pause initial-delay initial-interval retry-delay min-wait seconds", "wait"),
    ("multiplier backoff-factor exponent growth base", "factor"),
)
"""Keys that people try in a rule of `retries`, and ours for the same."""

RETRY_HINTS: Final[Hints] = hints(
    (
        "backoff exponential strategy backoff-strategy",
        "the first wait is `wait: 1 s`, and each further one `factor: 2` times as long",
    ),
    ("max-wait max-delay max-interval max-backoff", "waits have no bound; `times` and `factor` say how long they get"),
    ("jitter random", "waits are not varied; `wait` and `factor` say how long they are"),
    ("timeout", "how long each attempt may take is `time: 1 h`, beside `retries`"),
    ("policy retry-policy", "which failures are tried again is `on:`; without it all of the job's own are"),
    ("memory time cpus disk", "what each attempt needs stands beside `retries`; the rules give more after a failure"),
)
"""For keys of `retries` that have no counterpart."""

CAUSES_ELSEWHERE: Final[Hints] = hints(
    ("oom out-of-memory oom-killed outofmemory mem", "memory"),
    ("timeout timed-out walltime time-limit deadline", "time"),
    ("exit-code nonzero non-zero", "exitCode"),
    ("missing-input no-input", "missingInput"),
    ("missing-output no-output", "missingOutput"),
)
ALL_CAUSES: Final = frozenset({"any", "all", "always", "failure", "failures", "error", "errors", "onfailure", "failed"})
"""Words for every failure, which is what holds without `on`."""
