"""Writes the output files of a case into a folder, each under a name that stays its own when other files come.

A file of a loop keeps its path in the folder of its job. Where that is the same for several, what the iteration is for
stands before the name."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from mendflow.cli.case_ending import all_items
from mendflow.cli.exit_codes import EnvironmentUnfit
from mendflow.cli.printing import say
from mendflow.cli.summary import relative
from mendflow.client import Client
from mendflow.client.files import reference_of
from mendflow.core.model.values import FileRef, Value, file_of, spilled_file
from mendflow.core.model.views import CaseOrigin, CaseView, ItemView
from mendflow.pages.formatting import one_line

NAME_BYTES_MAX = 200
NAMES_SHOWN = 10
LINE_CHARS_MAX = 600
RECORD = ".mendflow-outputs.json"


class WrittenOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """The local paths of output files, by their place in the outputs. `left` are files that earlier cases of the flow
    wrote into the folder and this one did not, `replaced` those that were there and that no case had written. `flaw` is
    why not all could be written, `advice` what else would write them."""

    folder: Path
    paths: dict[str, Path]
    left: list[str] = []
    replaced: list[str] = []
    flaw: str = ""
    advice: str = ""

    def say_others(self) -> None:
        """Print what else is in the folder, or was."""
        shown = f"{relative(self.folder)}/"
        if self.left:
            say(f"left from earlier cases in {shown}: {_listed(self.left)}")
        if self.replaced:
            say(f"replaced in {shown}, though no case had written them: {_listed(self.replaced)}")

    def demand_all(self, case: str, options: str = "") -> None:
        """Raise EnvironmentUnfit unless all were written."""
        if self.flaw:
            raise EnvironmentUnfit(
                f"output files of {case} could not be written: {self.flaw}; they are kept, and"
                f" mendflow watch {case} --output-dir DIR{options} writes them{self.advice}"
            )


async def fetch_outputs(client: Client, case: CaseView, folder: Path, *, overwrite: bool = False) -> WrittenOutputs:
    """Write each output file into the folder. Where it is not the case's own, a list of them is left there, and a file
    that no case had written is replaced only if `overwrite` says so; the case's own flow file and inputs never are."""
    files = list(_files_in(case.outputs, ""))
    names = await _names(client, case, files)
    known = {} if folder.name == case.id else _read_record(folder)
    by_cases = {name for written in known.values() for name in written}
    own = {name for name in names.values() if folder.name != case.id and name not in by_cases}
    sources = [names[place] for place, ref in files if _is_source(case, ref, folder / names[place])]
    others = [names[place] for place, ref in files if names[place] in own and _is_other(ref, folder / names[place])]
    others = [name for name in others if name not in sources]
    spared = {*sources, *(() if overwrite else others)}
    paths: dict[str, Path] = {}
    try:
        for place, ref in files:
            if names[place] not in spared:
                paths[place] = await client.download(ref, folder / names[place], of=case.id)
        here = set(names.values()) - spared
        left = [name for name in known.get(case.flow, []) if name not in here | spared and (folder / name).exists()]
        if here and folder.name != case.id:
            _write_record(folder, known | {str(case.flow): sorted({*here, *left})})
    except OSError as error:
        return WrittenOutputs(folder=folder, paths=paths, flaw=str(error))
    if not spared:
        return WrittenOutputs(folder=folder, paths=paths, left=left, replaced=others)
    return WrittenOutputs(
        folder=folder,
        paths=paths,
        left=left,
        replaced=others if overwrite else [],
        flaw=_spared_text(folder, sources, [] if overwrite else others),
        advice="" if overwrite or not others else "; --overwrite replaces files that no case had written",
    )


def _spared_text(folder: Path, sources: list[str], others: list[str]) -> str:
    """Which files of the user's stay as they are, and why."""
    where = f"{relative(folder)}/"
    told = [f"the case's own flow file or inputs in {where} are not replaced: {_listed(sources)}"] if sources else []
    told += [f"files in {where} that no case had written are not replaced: {_listed(others)}"] if others else []
    return "; ".join(told)


def _is_other(ref: FileRef, path: Path) -> bool:
    """Whether something else than this content is there."""
    if path.is_symlink() and not path.exists():
        return True
    return path.is_file() and (path.stat().st_size != ref.bytes or reference_of(path).sha256 != ref.sha256)


def _is_source(case: CaseView, ref: FileRef, path: Path) -> bool:
    """Whether the flow or an input of the case would be replaced by something else."""
    if not path.is_file() or not _is_other(ref, path):
        return False
    origin = case.origin or CaseOrigin()
    named = (origin.flow, origin.inputs_file, *origin.inputs.values())
    if any(each and _is_same_file(Path(each), path) for each in named):
        return True
    given = {each.sha256 for _, each in _files_in(case.inputs, "") if each.bytes == path.stat().st_size}
    return bool(given) and reference_of(path).sha256 in given


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False


async def _names(client: Client, case: CaseView, files: list[tuple[str, FileRef]]) -> dict[str, str]:
    """The path of each file below the folder, by its place in the outputs."""
    paths = [_own_path(place, ref) for place, ref in files]
    often = {path for path, number in Counter(paths).items() if number > 1}
    elements = _elements(files, await all_items(client, case.id)) if often else {}
    names: dict[str, str] = {}
    for (place, _), path in zip(files, paths, strict=True):
        names[place] = _free_name(path, place, elements.get(place, "") if path in often else "", set(names.values()))
    return names


def _read_record(folder: Path) -> dict[str, list[str]]:
    """The files that cases wrote into the folder, by flow."""
    try:
        return msgspec.json.decode((folder / RECORD).read_bytes(), type=dict[str, list[str]])
    except (OSError, msgspec.DecodeError):
        return {}


def _write_record(folder: Path, record: dict[str, list[str]]) -> None:
    beside = folder / f"{RECORD}.{os.getpid()}"
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(record)))
    beside.replace(folder / RECORD)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    return one_line(", ".join(names[:NAMES_SHOWN]), LINE_CHARS_MAX) + more


def _files_in(value: Value, place: str) -> Iterator[tuple[str, FileRef]]:
    """Every file in a value, with its place: `tables[2]`, `result.plot`. A value that was too large is stored as a JSON
    file."""
    spilled = spilled_file(value)
    ref = msgspec.structs.replace(spilled, name=f"{place}.json") if spilled else file_of(value)
    if ref:
        yield place, ref
    elif isinstance(value, dict):
        for key, below in value.items():
            yield from _files_in(below, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _files_in(below, f"{place}[{index}]")


def _own_path(place: str, ref: FileRef) -> str:
    """The file's own name, harmless, with the folders in it; that of a list also with the folder that it lay in."""
    path = f"{ref.folder}/{ref.name}" if "[" in place else ref.name
    return "/".join([_harmless(part) for part in path.split("/") if part not in ("", ".", "..")] or ["file"])


def _elements(files: list[tuple[str, FileRef]], items: list[ItemView]) -> dict[str, str]:
    """What the iterations are for that left these files, by place. Where several left the same
    content, they are known only if the files of all are here."""
    left: dict[FileRef, dict[str, None]] = {}
    for item in items:
        for _, ref in _files_in(item.files, ""):
            left.setdefault(ref, {})[item.element.replace(", ", "-")] = None
    here = Counter((_output(place), ref) for place, ref in files)
    queues = {key: iter(left[key[1]]) for key, number in here.items() if len(left.get(key[1], {})) == number}
    found = {place: next(queues[key]) for place, ref in files if (key := (_output(place), ref)) in queues}
    keys = {place: (_output(place), ref.folder, ref.name, found[place]) for place, ref in files if place in found}
    often = Counter(keys.values())
    return {place: found[place] for place, key in keys.items() if often[key] == 1}


def _output(place: str) -> str:
    """The output that has this place in it."""
    return place.partition("[")[0]


def _free_name(path: str, place: str, element: str, taken: set[str]) -> str:
    """The path, with the element before its last part if that is given, and made different if it is taken."""
    before, _, own = path.rpartition("/")
    folder = f"{before}/" if before else ""
    name = f"{folder}{_harmless(f'{element}-{own}')}" if element else path
    if name in taken and element:
        name = f"{folder}{_harmless(f'{_output(place)}-{element}-{own}')}"
    if name in taken:
        own = _harmless(f"{place}-{own}")
        name = f"{folder}{own}"
    number = 2
    while name in taken:
        name, number = f"{folder}{number}-{own}", number + 1
    return name


def _harmless(part: str) -> str:
    """A part of a path as it was given, in whatever letters, but for what a terminal or a file system minds."""
    kept = "".join(char if char.isprintable() and char not in '/\\:*?"<>|' else "_" for char in part).lstrip(".")
    while len(kept.encode(errors="replace")) > NAME_BYTES_MAX:
        middle = len(kept) // 2
        kept = kept[: middle - 1] + kept[middle:]  # the beginning and the end say most
    return kept or "file"
