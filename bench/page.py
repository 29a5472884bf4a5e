"""docs/understand/benchmarks.md: the comparison with others first, then a section for each measurement that is run by
itself.

Whoever measures writes its own part and leaves the others as they are."""

from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "understand" / "benchmarks.md"
_SECTION = "\n## "


def with_head(page: str, head: str) -> str:
    """The page with another beginning."""
    _, mark, sections = page.partition(_SECTION)
    return head.rstrip("\n") + "\n" + (f"{mark}{sections}" if mark else "")


def with_section(page: str, title: str, body: str) -> str:
    """The page with this section instead of the one of the same title, or at its end."""
    head, *sections = page.split(_SECTION)
    new = f"{title}\n\n{body.strip()}\n"
    titles = [section.partition("\n")[0] for section in sections]
    if title in titles:
        sections[titles.index(title)] = new
    else:
        sections.append(new)
    return "".join([head.rstrip("\n") + "\n", *(f"{_SECTION}{section.rstrip()}\n" for section in sections)])


def write_section(title: str, body: str) -> None:
    PAGE.write_text(with_section(PAGE.read_text(), title, body))


def ruled(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table in Markdown; all but the first column are numbers."""
    lines = [columns, ("---", *["--:"] * (len(columns) - 1)), *rows]
    return "\n".join(f"|{'|'.join(line)}|" for line in lines)
