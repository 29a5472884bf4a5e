"""Documents for tests, put together from their parts."""

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.formats.jsdl import read_jsdl

JSDL = "http://schemas.ggf.org/jsdl/2005/11/jsdl"
POSIX = "http://schemas.ggf.org/jsdl/2005/11/jsdl-posix"
HPC = "http://schemas.ggf.org/jsdl/2006/07/jsdl-hpcpa"
SPMD = "http://schemas.ogf.org/jsdl/2007/02/jsdl-spmd"


def document(*parts: str) -> str:
    """A document whose parts each stand on a line, the first on line 2."""
    inner = "\n".join(parts)
    return f'<j:JobDefinition xmlns:j="{JSDL}" xmlns="{JSDL}" xmlns:p="{POSIX}"><j:JobDescription>\n{inner}\n' + (
        "</j:JobDescription></j:JobDefinition>"
    )


def posix(*parts: str) -> str:
    return f'<Application><POSIXApplication xmlns="{POSIX}">{"".join(parts)}</POSIXApplication></Application>'


def program(*words: str, more: str = "") -> str:
    first, *rest = words
    return posix(f"<Executable>{first}</Executable>", *(f"<Argument>{word}</Argument>" for word in rest), more)


def resources(*parts: str) -> str:
    return f"<Resources>{''.join(parts)}</Resources>"


def staging(name: str, *, flag: str = "overwrite", source: str = "", target: str = "", more: str = "") -> str:
    places = f"<Source><URI>{source}</URI></Source>" if source else ""
    places += f"<Target><URI>{target}</URI></Target>" if target else ""
    flags = f"<CreationFlag>{flag}</CreationFlag>" if flag else ""
    return f"<DataStaging><FileName>{name}</FileName>{more}{flags}{places}</DataStaging>"


def flow(*parts: str) -> Flow:
    return read_jsdl(document(*parts), "/nowhere/doc.jsdl")


def job(*parts: str) -> JobActivity:
    body = flow(*parts).body
    assert isinstance(body, JobActivity)
    return body


def complaints(*parts: str) -> list[str]:
    """Each problem of a document, with its line."""
    return refused(document(*parts))


def refused(text: bytes | str) -> list[str]:
    try:
        read_jsdl(text, "/nowhere/doc.jsdl")
    except BadFlow as error:
        return [f"{problem.line}: {problem.message}" for problem in error.problems]
    return []
