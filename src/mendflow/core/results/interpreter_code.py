"""What programs in languages other than the shell's read from outside without a path or a URL in their text: the home
folder, the folder above their own, what libraries fetch, and what a shell that they start reads."""

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from mendflow.core.results.known_programs import FETCHES
from mendflow.lazy import lazy_pattern

_INTERPRETER = lazy_pattern(r"(?:python|pypy|perl|ruby|node|nodejs|Rscript|R|julia|lua|php|deno|bun)[\d.]*")
_HOME = lazy_pattern(r"\bPath\.home\b|\bexpanduser\b|\bexpandvars\b|\bhomedir\b|\bpath\.expand\b|\bDir\.home\b")
_OWN_FOLDER = lazy_pattern(
    r"\b(?:cwd|getcwd|getcwdu|getwd|abspath|realpath|absolute|resolve|normalizePath|Dir\.pwd|pwd)\b|\b__file__\b|__dirname"
)
_ABOVE = lazy_pattern(r"\.parents?\b|\bdirname\b")
_ALWAYS_ABOVE = lazy_pattern(r"\bpardir\b")
_FETCHING_LIBRARY = lazy_pattern(
    r"\b(?:import|from|require|library|use)\b[^\n;]*?(?<![\w.])(urllib\.request|urllib3|requests|httpx|aiohttp|http\.client"
    r"|ftplib|paramiko|boto3|botocore|socket|psycopg2?|pymysql|pymongo|redis|open-uri|net/http|httr2?|RCurl|axios|LWP)\b"
    r"|\b(download\.file|urlopen|urlretrieve)\s*\("
)
_STARTS_PROGRAMS = lazy_pattern(
    r"\bsubprocess\b|\bpopen\b|\bPopen\b|\bsystem2?\b|\bexec\w*\s*\(|\bspawn\w*\b|\bcheck_output\b|\bqx\b|`|\bchild_process\b"
)
_SHELL_VARIABLE = lazy_pattern(r"(?<![\w)\]])\$\{?([A-Za-z_]\w*)")
_FETCHING_PROGRAM = lazy_pattern(rf"[\"'`](?:\S*/)?({'|'.join(sorted(FETCHES))})(?=[\s\"'`])")
_OF_JQ = lazy_pattern(r"(?<![\w.$])(?:env|\$ENV)\b(?:\.(\w+)|\[\"(\w+)\"\])?")
_WHOLE_ENVIRONMENT: Final = "the whole environment"


class OutsideRead(NamedTuple):
    """Something outside that a program reads."""

    name: str
    is_variable: bool = False
    is_program: bool = False


def is_interpreter(program: str) -> bool:
    """Whether a program runs a text in another language that it is given."""
    return _INTERPRETER.fullmatch(program) is not None


def outside_reads_in(text: str, known: Collection[str]) -> Iterator[OutsideRead]:
    """What a program in another language reads from outside. `known` are the variables that its job sets."""
    if _HOME.search(text):
        yield OutsideRead("the home folder")
    if _ALWAYS_ABOVE.search(text) or (_ABOVE.search(text) and _OWN_FOLDER.search(text)):
        yield OutsideRead("a folder above its own")
    for found in _FETCHING_LIBRARY.finditer(text):
        yield OutsideRead(found.group(1) or found.group(2), is_program=True)
    if _STARTS_PROGRAMS.search(text):
        yield from (OutsideRead(name, is_program=True) for name in _FETCHING_PROGRAM.findall(text))
        yield from (OutsideRead(name, is_variable=True) for name in _SHELL_VARIABLE.findall(text) if name not in known)


def variables_of_jq(text: str, known: Collection[str]) -> Iterator[str]:
    """The environment variables that a program for jq reads, but for those that are known."""
    for found in _OF_JQ.finditer(text):
        name = found.group(1) or found.group(2) or _WHOLE_ENVIRONMENT
        if name not in known:
            yield name
