"""Files and commands of flows in Python: paths as arguments, files of mapped jobs, and elements in commands."""  # DU-3

import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from mendflow.core.data.path_arguments import PLACED
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Input
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.values import FileRef, Value
from mendflow.pilot.worker.process import _paths
from tests.formats import folder_pilot
from tests.formats.python_flows import Loader, job_of, module_of
from tests.formats.test_flows_run import World, digest_of, well

FILES_TOP = """
@job(files="lines.txt")
def count(sample: Path, factor: int = 1):
    Path("lines.txt").write_text(f"{sample.name} {len(sample.read_text()) * factor}")

@job(files={"table": "out.txt", "log": "log.txt"})
def several(x): ...

@job
def merge(parts: list[Path], names=None) -> list:
    return [part.read_text() if part else None for part in parts]

@job
def look(file) -> str:
    return f"{type(file).__name__} {file}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("data/a.txt", "data/b.txt", "more/a.txt", "work.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


@pytest.mark.parametrize(
    ("call", "argument", "inputs"),
    [
        ("count(Path('data/a.txt'))", {"$path": "sample/a.txt"}, {"sample/a.txt": "data/a.txt"}),
        ("count('data/a.txt')", {"$path": "sample/a.txt"}, {"sample/a.txt": "data/a.txt"}),
        (
            "count(given)",
            {"$path": "sample", "of": "${{ inputs.given }}"},
            {"sample/": "${{ inputs.given }}"},
        ),
        (
            "look(given)",
            {"$path": "file", "of": "${{ inputs.given }}"},
            {"file/": "${{ inputs.given }}"},
        ),
        ("look(Path('data/a.txt'))", {"$path": "file/a.txt"}, {"file/a.txt": "data/a.txt"}),
        ("look('data/a.txt')", "data/a.txt", {}),
        (
            "look(Path('data'))",
            {"$path": "file/data"},
            {"file/data/a.txt": "data/a.txt", "file/data/b.txt": "data/b.txt"},
        ),
        (
            "merge([Path('data/a.txt'), 'data/b.txt'])",
            [{"$path": "parts/a.txt"}, {"$path": "parts/b.txt"}],
            {"parts/a.txt": "data/a.txt", "parts/b.txt": "data/b.txt"},
        ),
        (
            "merge(['data/a.txt', 'more/a.txt'])",
            [{"$path": "parts/0-a.txt"}, {"$path": "parts/1-a.txt"}],
            {"parts/0-a.txt": "data/a.txt", "parts/1-a.txt": "more/a.txt"},
        ),
        (
            "merge(Path('data/*.txt'))",
            [{"$path": "parts/a.txt"}, {"$path": "parts/b.txt"}],
            {"parts/a.txt": "data/a.txt", "parts/b.txt": "data/b.txt"},
        ),
        (
            "merge(all_of_them)",
            {"$path": "parts", "of": "${{ inputs.all_of_them }}"},
            {"parts/": "${{ inputs.all_of_them }}"},
        ),
    ],
)
def test_a_path_is_a_file_that_is_brought(
    python: Loader, folder: Path, call: str, argument: Value, inputs: dict[str, Value]
) -> None:
    flow = python(
        f"return {call}", "given: Path = Path('data/a.txt'), all_of_them: list[Path] = ['data/*.txt']", FILES_TOP
    )
    job = job_of(flow, call.partition("(")[0])
    assert (job.args, job.inputs) == ((argument,), inputs)
    assert flow.inputs == {
        "given": Input(type="file", default="data/a.txt"),
        "all_of_them": Input(type="files", default=["data/*.txt"]),
    }


def stored(folder: Path) -> Callable[[JobSpec], Outcome]:
    """A pilot that brings inputs into a folder, calls functions there, and takes the files that they leave."""
    module = module_of(folder / "work.py")
    made = iter(range(1000))
    beside = {digest_of(str(path.relative_to(folder))): path for path in folder.rglob("*.*") if path.is_file()}

    def work(spec: JobSpec) -> Outcome:
        place = folder / f"attempt-{next(made)}"
        for path, ref in spec.inputs.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text({**folder_pilot.KEPT, **beside}[ref.sha256].read_text())
        place.mkdir(exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(place)
            assert spec.function is not None
            if spec.item in ("count[1]",) and (folder / "broken").exists():
                return Outcome(fault=Fault(name="exitCode", category=Category.JOB, message="broken"))
            args = [_paths(each) if isinstance(each, dict) and PLACED in each else each for each in spec.args]
            outputs = getattr(module, spec.function.name)(*args, **spec.kwargs)
        files = {name: folder_pilot.stored(place / path, Path(path).name) for name, path in spec.files.items()}
        return Outcome(outputs=outputs, files=files)

    return work


def test_mapped_files_arrive_as_paths_in_the_order_of_the_list(python: Loader, folder: Path) -> None:  # DU-3
    body = "return merge(count.map([Path('data/b.txt'), Path('more/a.txt'), Path('data/a.txt')]).file())"
    flow = python(body, top=FILES_TOP)
    assert World(flow, stored(folder)).outputs() == {"result": ["b.txt 10", "a.txt 10", "a.txt 10"]}
    (folder / "broken").touch()
    flow = python(body.replace("])", "], tolerate=1)"), top=FILES_TOP)
    assert World(flow, stored(folder)).outputs() == {"result": ["b.txt 10", None, "a.txt 10"]}


def test_a_function_with_paths_is_a_plain_function_too(python: Loader, folder: Path) -> None:
    python("return merge(samples)", "samples: list[Path] = [Path('data/*.txt')]", FILES_TOP)
    module = module_of(folder / "work.py")
    assert module.merge([str(folder / "work.sh")]) == ["work.sh"]
    assert module.main() == ["data/a.txt", "data/b.txt"]
    assert module.look("x") == "str x"
    assert module.two.options(when=False)(1) is None


@pytest.mark.parametrize(
    ("inputs", "found"),
    [
        ('["work.sh"]', {"work.sh": "work.sh"}),
        ('"work.sh"', {"work.sh": "work.sh"}),
        ('[Path("work.sh")]', {"work.sh": "work.sh"}),
        ('["data/"]', {"data/a.txt": "data/a.txt", "data/b.txt": "data/b.txt"}),
        ('{"in.txt": Path("data/a.txt")}', {"in.txt": "data/a.txt"}),
        ('{"all/": Path("data")}', {"all/a.txt": "data/a.txt", "all/b.txt": "data/b.txt"}),
        ('{"all/": "data/*.txt"}', {"all/a.txt": "data/a.txt", "all/b.txt": "data/b.txt"}),
    ],
)
def test_inputs_of_a_shell_job_are_paths(python: Loader, folder: Path, inputs: str, found: dict[str, str]) -> None:
    assert job_of(python(f"shell('bash work.sh', inputs={inputs})"), "shell").inputs == found


def test_files_of_a_job_are_asked_for_by_name_or_are_the_only_one(python: Loader) -> None:
    flow = python(
        """
made = several(1)
many = several.map([1, 2])
lone = count.map(["work.py"])
files = {"t": made.file("table"), "l": made.files.log, "m/": many.files["table"], "n/": lone.file()}
shell("x", name="a", inputs=files)
shell("x", name="b", inputs={"f": lone.file()[0]})
""",
        top=FILES_TOP,
    )
    assert job_of(flow, "a").inputs == {
        "t": "${{ jobs.several.files.table }}",
        "l": "${{ jobs.several.files.log }}",
        "m/": "${{ jobs.several-2.files.table }}",
        "n/": '${{ jobs.count.files["lines.txt"] }}',
    }
    assert job_of(flow, "b").inputs == {"f": '${{ jobs.count.files["lines.txt"][0] }}'}


AWKWARD = ["a b", "$HOME `id` $(id) ;ls 'q' \"d\" \\ *", "-n", "", "tab\tnew\nline", 3, [1, 2]]


@pytest.mark.parametrize(
    ("command", "prints"),
    [
        ("printf %s {item}", "{}"),
        ('printf %s "<{item}>"', "<{}>"),
        ("printf %s '<{item}>'", "<{}>"),
        ("printf %s $'<\\'{item}>'", "<'{}>"),
        ('printf %s "$(printf %s {item}x)"', "{}x"),
        ("printf %s x{item}y{item}", "x{}y{}"),
        ("printf %s {item} # don't {item}", "{}"),
        ('awk \'BEGIN {print ""}\' > /dev/null; printf %s "${NOTHING:-}"{item}', "{}"),
    ],
)
@pytest.mark.parametrize("value", AWKWARD)
def test_an_element_is_one_word_of_the_command_whatever_is_in_it(
    python: Loader, command: str, prints: str, value: Value
) -> None:
    world = World(python(f"shell.map({command!r}, [{value!r}])"), well)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", str(world.ran[0].command)], capture_output=True, text=True)
    shown = value if isinstance(value, str) else msgspec.json.encode(value).decode().replace(",", ", ")
    assert done.stdout == prints.replace("{}", shown), done.stderr


def test_elements_stand_in_paths_and_variables_too(python: Loader, folder: Path) -> None:
    flow = python(
        """
shell.map("cat {item} > {index}", ["a", "b"], name="names", files={"t": "{item}.tsv"}, env={"X": "<{item}>"},
          inputs={"in.txt": "data/{item}.txt"})
shell.map("gzip {item}", samples, name="files", files="{item}.gz")
shell.map("wc in.txt", samples, name="given", inputs={"in.txt": "{item}"})
shell.map("wc {item}", [Path("data/a.txt"), Path("more/a.txt")], name="paths")
""",
        "samples: list[Path]",
    )
    ref = FileRef(sha256="0" * 64, bytes=1, name="s.txt").as_value()
    specs = {str(spec.item): spec for spec in World(flow, well, samples=[ref]).ran}
    first = specs["names[1]"]
    assert (first.command, first.files, first.env) == ("cat 'b' > '1'", {"t": "b.tsv"}, {"X": "<b>"})
    assert list(first.inputs) == ["in.txt"]
    zipped = specs["files[0]"]
    assert (zipped.command, list(zipped.inputs)) == ("gzip 'item/s.txt'", ["item/s.txt"])
    assert list(zipped.files.values()) == ["item/s.txt.gz"]
    assert list(specs["given[0]"].inputs) == ["in.txt"]
    assert (specs["paths[1]"].command, list(specs["paths[1]"].inputs)) == ("wc 'item/a.txt'", ["item/a.txt"])


def test_a_value_in_an_f_string_is_quoted_if_that_is_asked_for(python: Loader) -> None:
    flow = python("shell(f'echo {text:q}')", 'text: str = "it\'s"')
    assert World(flow, well).ran[0].command == "echo 'it'\"'\"'s'"
