"""The options of a job in Python: the keys of the flow file, with `_` for `-`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from mendflow.core.data.path_patterns import OWN_FOLDER, is_own_folder, is_pattern, means_many
from mendflow.core.model.errors import Problem
from mendflow.core.model.jobs import Limits, Submission
from mendflow.core.model.secrets import SecretUse
from mendflow.core.model.software import Software
from mendflow.core.model.templates import PublicationTemplate, ResourceTemplates
from mendflow.core.model.units import DURATION_EXAMPLES, SIZE_EXAMPLES, auto_bound, duration_ms, is_auto, size_bytes
from mendflow.formats.input_files import NoSuchFiles, input_files_of, means_several
from mendflow.formats.named_limits import in_order, named_limit_flaw
from mendflow.formats.python.file_arguments import require_file, value_text
from mendflow.formats.python.handles import Handle, template_of
from mendflow.formats.python.hints import option_error
from mendflow.formats.python.problems import bad_flow
from mendflow.formats.python.retries import Retry, retry_fields
from mendflow.formats.secret_uses import uses_of
from mendflow.formats.software import BadSoftware, environment_of, modules_of, with_modules
from mendflow.formats.spelling import nearest_word


class JobOptions(TypedDict, total=False):
    """Durations and sizes are texts with a unit, such as "10 min" and "2 GB"."""

    name: str
    when: Any
    needs: Sequence[Any]
    after: Sequence[Any]
    cpus: Any
    memory: Any
    disk: Any
    gpus: Any
    time: Any
    site: Any
    hosts: Any
    system: Any
    machine: Any
    env: Mapping[str, Any]
    shell: str
    container: str | Mapping[str, Any] | None
    inputs: Mapping[str, Any] | Sequence[str | Path] | str | Path
    files: Mapping[str, str] | Sequence[str] | str
    publish: Mapping[str, Any]
    link_inputs: bool
    open_files: int
    file_size: str
    processes: int
    cpu_time: str
    stack: str
    data_segment: str
    locked_memory: str
    virtual_memory: str
    core_dump: str
    limits: Mapping[str, int] | Sequence[str] | str
    secrets: Mapping[str, Any] | Sequence[str] | str
    priority: int
    owner: str
    expected: str
    retries: int | Retry | Sequence[Retry]
    retry_wait: str
    submit: Literal["wait", "poll", "notify", "forget"]
    stage_in: Literal["parallel", "sequence"]
    cache: bool
    environment: str | Path | Sequence[str] | Mapping[str, Any]
    modules: str | Sequence[str]
    domain: str
    max_parallel: int
    tolerate: Any
    on_failure: Literal["finish", "stop"]


class CallOptions(TypedDict, total=False):
    """The options of a flow that is called, and of a person's task."""

    name: str
    when: Any
    needs: Sequence[Any]
    after: Sequence[Any]
    domain: str
    max_parallel: int
    tolerate: Any
    on_failure: Literal["finish", "stop"]


KNOWN = frozenset(JobOptions.__annotations__)
KNOWN_OF_CALLS = frozenset(CallOptions.__annotations__)
OWN = frozenset({"name", "when", "needs", "after"})
"""Options that are those of one job and no defaults of all."""

OF_THE_JOB_ITSELF = (
    "open-files",
    "file-size",
    "processes",
    "cpu-time",
    "stack",
    "data-segment",
    "locked-memory",
    "virtual-memory",
    "core-dump",
)
"""Limits that are options of their own, with `_` for `-`."""

PUBLISHING = frozenset(PublicationTemplate.__struct_fields__)


def check_options(
    options: Mapping[str, Any], known: frozenset[str] = KNOWN, what: str = "a job"
) -> tuple[JobOptions, list[Problem]]:
    """The valid options, and what is wrong with the others."""
    unknown = [bad_flow(*option_error(name, what, known)) for name in options if name not in known]
    found: JobOptions = {name: value for name, value in options.items() if name in known}  # type: ignore[assignment]  # every key was just looked at
    return found, [problem for each in unknown for problem in each.problems]


def job_fields(options: JobOptions, owner: object, folder: Path) -> dict[str, Any]:
    """The fields of the model's job that the options speak of. `folder` is the flow's."""

    def template(name: str, default: Any) -> Any:
        return template_of(options.get(name, default), owner, name)

    files = files_of(options.get("files", {}), owner)
    file_lists = tuple(name for name, path in files.items() if isinstance(path, str) and means_many(path))
    return {
        "env": template("env", {}),
        "inputs": inputs_of(options.get("inputs", {}), owner, folder),
        "files": files,
        "file_lists": file_lists,
        "publish": publications(options, files, file_lists, owner),
        "link_inputs": boolean(options, "link_inputs"),
        "resources": ResourceTemplates(
            cpus=template("cpus", 1.0),
            memory_bytes=learnable(options, "memory", "size", owner),
            disk_bytes=measure(options, "disk", "size", owner),
            gpus=template("gpus", 0),
            wall_ms=learnable(options, "time", "duration", owner),
            site=template("site", ""),
            hosts=tuple(hosts) if isinstance(hosts := template("hosts", ()), list) else (hosts,),
            system=template("system", ""),
            machine=template("machine", ""),
        ),
        "limits": Limits(
            open_files=whole_number(options, "open_files"),
            file_bytes=measure(options, "file_size", "size", owner),
            processes=whole_number(options, "processes"),
            cpu_ms=measure(options, "cpu_time", "duration", owner),
            stack_bytes=measure(options, "stack", "size", owner),
            data_bytes=measure(options, "data_segment", "size", owner),
            locked_bytes=measure(options, "locked_memory", "size", owner),
            virtual_bytes=measure(options, "virtual_memory", "size", owner),
            core_bytes=measure(options, "core_dump", "size", owner) if "core_dump" in options else None,
            named=in_order(limit_amounts(options.get("limits", {}))),
        ),
        "secrets": secret_uses(options.get("secrets", ())),
        "priority": whole_number(options, "priority", least=-1_000_000),
        "owner": str(options.get("owner", "")),
        "expected_ms": measure(options, "expected", "duration", owner),
        **retry_fields(options.get("retries")),
        "retry_wait_ms": retry_wait(options, owner),
        "submission": Submission(choice(options, "submit", [str(each) for each in Submission], "notify")),
        "stage_in": choice(options, "stage_in", ["parallel", "sequence"], "parallel"),
        "cache": boolean(options, "cache") if "cache" in options else None,
        "software": software_of(options, folder),
        "domain": domain_of(options),
    }


def software_of(options: JobOptions, folder: Path) -> Software | None:
    given = options.get("environment")
    try:
        environment = (
            None if given is None else environment_of(str(given) if isinstance(given, Path) else given, folder)
        )
        return with_modules(environment, modules_of(options.get("modules", ())))
    except BadSoftware as error:
        raise bad_flow(str(error), error.suggestion) from None


def secret_uses(given: Any) -> tuple[SecretUse, ...]:
    """The secrets that a job gets."""
    found = []
    for use, flaw in uses_of(given):
        if use is None:
            raise bad_flow(f"secrets: {flaw}")
        found.append(use)
    return tuple(found)


def limit_amounts(given: Any) -> dict[str, int]:
    """The named limits that a job uses: a dict of how much of each, or names, one of each."""
    if isinstance(given, str):
        given = [given]
    if isinstance(given, (list, tuple)):
        given = {name: 1 for name in given if isinstance(name, str)} if all(isinstance(e, str) for e in given) else None
    if not isinstance(given, Mapping):
        raise bad_flow('limits is a dict of named limits, such as limits={"licence-x": 1}, or a list of their names')
    for name, amount in given.items():
        if flaw := named_limit_flaw(name, amount, OF_THE_JOB_ITSELF):
            raise bad_flow(f"limits: {flaw}")
    return dict(given)


def domain_of(options: Mapping[str, Any]) -> str:
    """The domain that a job or a call goes to; empty: it stays here."""
    domain = options.get("domain", "")
    if not isinstance(domain, str):
        raise bad_flow(f'domain is the name of a domain, or "any", not {domain!r:.80}')
    return domain


def retry_wait(options: Mapping[str, Any], owner: object) -> Any:
    if "retry_wait" in options and not isinstance(options.get("retries", 0), int):
        raise bad_flow('retry_wait goes with a number of retries; of a Retry it is wait="1 s"')
    return measure(options, "retry_wait", "duration", owner)


def paths_by_name(given: Any, option: str) -> dict[Any, Any]:
    """A dict as it is; a path, or a list of paths, each under itself."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, Handle) or (isinstance(given, (list, tuple)) and any(isinstance(e, Handle) for e in given)):
        raise bad_flow(f'{option}: a file of another job needs a place in this one: {option}={{"in.txt": ...}}')
    paths = [given] if isinstance(given, (str, Path)) else given
    if not isinstance(paths, Sequence) or not all(isinstance(each, (str, Path)) for each in paths):
        raise bad_flow(f"{option} is a dict, or a list of paths, not {given!r:.200}")
    return {value_text(path): value_text(path) for path in paths}


def files_of(given: Any, owner: object) -> dict[str, Any]:
    """The files that a job leaves, by name."""
    named = paths_by_name(given, "files")
    for name, path in named.items():
        if not isinstance(given, Mapping) and "${{" in name:
            raise bad_flow(f'files: a file whose path is worked out needs a name of its own: {{"table": "{path}"}}')
        if not isinstance(path, (str, Path, Handle)):
            raise bad_flow(f"files: the path of `{name}` is a text, not {path!r:.80}")
        require_inner(path, "files")
    texts = {name: value_text(path) if isinstance(path, Path) else path for name, path in named.items()}
    found: dict[str, Any] = template_of(texts, owner, "files")
    return found


def inputs_of(given: Any, owner: object, folder: Path) -> dict[str, Any]:
    """The inputs, with the files of each folder and pattern beside the flow."""
    found: dict[str, Any] = {}
    for name, source in paths_by_name(given, "inputs").items():
        path = OWN_FOLDER if isinstance(given, Mapping) and is_own_folder(str(name)) else str(name)
        if path != OWN_FOLDER:
            require_inner(path, "inputs")
        text = value_text(source) if isinstance(source, Path) else source
        if isinstance(source, Path) and (folder / source).is_dir():
            text += "/"
        if isinstance(text, str) and "${{" not in text:
            more = given_input(path, text, folder)
        else:
            more = {path: template_of(text, owner, "inputs")}
        if twice := next((each for each in more if each in found and found[each] != more[each]), ""):
            raise bad_flow(f"inputs: two of them are to stand at `{twice}`; give one another folder")
        found |= more
    return found


def given_input(path: str, source: str, folder: Path) -> dict[str, Any]:
    """The input of a file beside the flow, or of all files of a folder or a pattern."""
    if not means_several(source, folder):
        require_file(source, folder)
        return {path: source}
    if path != source and not path.endswith("/") and is_pattern(source):
        raise bad_flow(f"inputs: `{source}` may be several files; write `{path}/` to have a folder of them")
    try:
        return input_files_of({path: source}, folder)
    except NoSuchFiles as missing:
        raise bad_flow(f"inputs: {missing}") from None


def require_inner(path: Any, option: str) -> None:
    """Refuse a path that leads out of the job's folder."""
    text = str(path) if isinstance(path, (str, Path)) else "${{"
    if "${{" not in text and (text.startswith("/") or ".." in text.split("/") or not text.strip("./")):
        raise bad_flow(f"{option}: `{text}` must be a path inside the job's folder, without `..`")


def publications(
    options: Mapping[str, Any], files: Mapping[str, Any], file_lists: Sequence[str], owner: object
) -> dict[str, PublicationTemplate]:
    """A logical name for a file, or a dict with `logical`, `element` and `data_set`, or with `url` and `overwrite`."""
    found = {}
    for name, given in options.get("publish", {}).items():
        if name not in files:
            raise bad_flow(f"publish: the job has no `{name}` among its files", nearest_word(name, files))
        if name in file_lists:
            raise bad_flow(f"publish: `{name}` is several files, and one file is published; pack them into one")
        parts = given if isinstance(given, Mapping) else {"logical": given}
        if unknown := parts.keys() - PUBLISHING:
            raise bad_flow(f"publish of {name} has `{min(unknown)}`", nearest_word(min(unknown), PUBLISHING))
        if ("logical" in parts) == ("url" in parts):
            raise bad_flow(f"publish of {name} needs a logical name, such as /store/reco/a.dat, or a url, and not both")
        found[name] = PublicationTemplate(**{key: template_of(each, owner, "publish") for key, each in parts.items()})
    return found


def boolean(options: Mapping[str, Any], name: str) -> bool:
    value = options.get(name, False)
    if not isinstance(value, bool):
        raise bad_flow(f"{name} is True or False, not {value!r}")
    return value


def whole_number(options: Mapping[str, Any], name: str, least: int = 0) -> int:
    value = options.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise bad_flow(f"{name} is a whole number from {least} on, not {value!r}")
    return value


def choice(options: Mapping[str, Any], name: str, words: list[str], default: str) -> str:
    value = options.get(name, default)
    if value not in words:
        raise bad_flow(f"{name} is one of {', '.join(words)}, not {value!r}", nearest_word(str(value), words))
    return str(value)


def learnable(options: Mapping[str, Any], name: str, kind: str, owner: object) -> Any:
    """A size or a duration that may be `auto`, or `auto up to` a bound."""
    value = options.get(name)
    if not isinstance(value, str) or "${{" in value or not is_auto(value):
        return measure(options, name, kind, owner)
    bound = auto_bound(value)
    if bound and not (duration_ms(bound) if kind == "duration" else size_bytes(bound)):
        example = "4 h" if kind == "duration" else "16 GB"
        raise bad_flow(f'{name}: {bound!r} is not a {kind} that can be a bound; say {name}="auto up to {example}"')
    return value


def measure(options: Mapping[str, Any], name: str, kind: str, owner: object) -> Any:
    value = options.get(name)
    if value is None:
        return 0
    if isinstance(value, Handle):
        return template_of(value, owner, name)
    if isinstance(value, str):
        if "${{" in value:
            return template_of(value, owner, name)
        number = duration_ms(value) if kind == "duration" else size_bytes(value)
        if number is not None:
            return number
    raise bad_flow(
        f"{name} is a {kind} such as {DURATION_EXAMPLES if kind == 'duration' else SIZE_EXAMPLES}, not {value!r}"
    )
