"""What people guess in Python, from other tools or from Python itself, is refused with how it is said here."""

import subprocess
import sys
from pathlib import Path

import pytest

from mendflow.core.model.errors import BadFlow
from mendflow.formats.python.loader import load_python
from tests.formats.python_flows import TOP

MORE = """
@job(files={"table": "t.tsv", "log": "log.txt"})
def several(x): ...

@job
def count(sample: Path, more: list[Path] = []) -> int: ...

@flow
def inner(n: int = 0):
    return one(n)
"""


def complaint(folder: Path, body: str, inputs: str = "n: int = 1, sample: Path = Path('work.py')") -> str:
    (folder / "work.py").write_text(f"{TOP}{MORE}\n@flow\ndef main({inputs}):\n    got = one(n)\n    {body}\n")
    with pytest.raises(BadFlow) as caught:
        load_python(folder / "work.py", "main")
    (problem,) = caught.value.problems
    line = (folder / "work.py").read_text().splitlines()[problem.line - 1].strip()
    assert line == body.split("\n", maxsplit=1)[0].strip(), f"the line of {problem}"
    return problem.message + (f" ({problem.suggestion})" if problem.suggestion else "")


NOT_KNOWN = "`jobs.one.outputs` is not known while the flow is being built: it "


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("if got: pass", "cannot be tested; use job.options(when=value > 3)(...)"),
        ("got > 3 and got < 9", "use job.options(when=value > 3)"),
        ("0 < got < 9", "with each comparison in parentheses: (a > 3) & (a < 9)"),
        ("not got", "`~` stand for and, or, not"),
        ("max(got, 3)", "cannot be tested"),
        ("for x in got: pass", "cannot be iterated; job.map("),
        ("[x for x in got]", "cannot be iterated; job.map("),
        ("a, b = got", "cannot be iterated"),
        ("sum(got)", "cannot be iterated"),
        ("sorted(got)", "cannot be iterated"),
        ("print(*got)", "cannot be iterated"),
        ("len(got)", 'has no length; take it inside a job, or in a condition: when=f"size({value}) > 3"'),
        (
            "range(got)",
            "is no number yet; do it inside a job; for a number of repetitions let a job return list(range(n))",
        ),
        ("[1, 2][got]", "is no number yet"),
        ("'x' * got", "is no number yet"),
        ("int(got)", "is no number yet"),
        ("float(got)", "is no number yet"),
        ("round(got)", "cannot be computed with like that; do it inside a job; + - * / // % and comparisons"),
        ("round(got, 2)", "cannot be computed with like that"),
        ("got ** 2", "cannot be computed with like that"),
        ("divmod(got, 2)", "cannot be computed with like that"),
        ("__import__('math').floor(got)", "cannot be computed with like that"),
        ("__import__('math').sqrt(got)", "is no number yet"),
        ("one(2) >> got", "is no order of jobs"),
        ("'a' in got", "cannot be searched"),
        ("f'{got:.2f}'", "cannot be written as `.2f`; do it inside a job; `:q`"),
        ("open(got)", "is no path yet; give it to a job whose parameter is a Path"),
        ("Path(got)", "is no path yet"),
        ("with got: pass", "cannot be awaited"),
        ("got['x'] = 3", "cannot be changed"),
        ("next(got)", "cannot be iterated"),
    ],
)
def test_what_needs_the_value_says_that_it_is_not_known_yet(tmp_path: Path, body: str, said: str) -> None:
    found = complaint(tmp_path, body)
    assert "is not known while the flow is being built: it " in found and said in found, found


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "got.result()",
            "`jobs.one.outputs.result` is not known while the flow is being built: it cannot be called; pass it on",
        ),
        ("got.get()", "pass it on as it is: it stands for the result, and the job that gets it waits"),
        ("got.wait()", "pass it on as it is"),
        ("got.map(one)", "job.map(value) runs a job for each element of it"),
        ("got.split(',')", "pass it to a job and do it there"),
        ("one.submit(n)", "`one` has no `.submit`: call it, one(...): that makes it a job"),
        ("one.delay(n)", "call it, one(...)"),
        ("one.expand(x=[1])", "one.map(xs) runs it for each element"),
        ("one.partial(y=3)", "one.map(xs, factor=2) gives the same factor to each"),
        ("one.with_options(retries=3)", "one.options(memory='2 GB') is the same job with others"),
        ("one.override(x=3)", "one.options("),
        ("inner.submit(n)", "call it, inner(...)"),
        (
            "one(n, wait_for=[got])",
            "waits for those whose results it gets, and for needs=[...] and after=[...], said as one.options(...)(...)",
        ),
        ("one(n, memory='2 GB')", "`memory` is an option: one.options(memory=...)(...)"),
        ("one(n, when=got > 3)", "`when` is an option: one.options(when=...)(...)"),
        ("one.map([1], memory='2 GB')", "`memory` is an option: one.options(memory=...)"),
        ("one.options(retry_delay_seconds=3)(n)", 'retries=Retry(4, wait="1 s", on=75)'),
        ("one.options(timeout_seconds=3)(n)", 'how long a job may take is time="10 min"'),
        ("one.options(trigger_rule='all_done')(n)", "has after=[x]; one that runs because x failed, when=x.failed"),
        ("one.options(cache_key_fn=3)(n)", "say cache=True"),
        ("one.options(task_id='a')(n)", 'its name is name="align"'),
        ("one.options(memry='1 GB')(n)", "a job has no option `memry` (`memory`)"),
        ("shell('x', outputs=['a'])", 'files that it leaves are files="out.txt"'),
        ("shell('x', retry=3)", 'retries=Retry(4, wait="1 s", on=75)'),
        (
            "shell(['echo', 'a'])",
            "a command is a text, not ['echo', 'a']; a list of words is one text: shlex.join(words)",
        ),
        ("task(one)", "a function becomes a job with @job"),
        ("task('Publish?')", 'a task needs the role of those who may do it: task("Publish?", role="editor")'),
        ("task('Publish?', role='e', deadline=7200)", "deadline is a duration such as"),
        ("task('Publish?', role='e', timeout='2 h')", "a task has no option `timeout`"),
        ("task('Publish?', role='e', fields=3)", "fields are the outputs that are wanted"),
        ("call(inner)", "a flow in Python is called as it is: name(...)"),
        ("call('sub.yml')", "there is no flow file `sub.yml`"),
        ("call('../sub.yaml')", "leads out of the flow's folder"),
        ("call.map('deployed', [1])", "call.map: 1 lists are given, and it takes 0 arguments by position"),
        ("inner.options(memory='1 GB')(n)", "a call of a flow has no option `memory`"),
        (
            "', '.join([got])",
            "TypeError while the file was read: sequence item 0: expected str instance, Handle found; a value that",
        ),
        (
            "shell.map(f'echo {item}', [1])",
            "name 'item' is not defined; in shell.map the command is a plain text, without f before it",
        ),
    ],
)
def test_a_word_of_another_tool_is_answered_with_ours(tmp_path: Path, body: str, said: str) -> None:
    assert said in complaint(tmp_path, body)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "two.map([1, 2], [1])",
            "lists that are zipped must be of one length: `x` has 2, `y` has 1 elements; product(...) takes all pairs",
        ),
        ("two.map(x=[1, 2])", "two: map goes over what is given by position, as in map(xs)"),
        ("two.map([1], [2], [3])", "two: 3 lists are given, and it takes 2 arguments by position"),
        ("two.map([1], x=3)", "two: `x` is given twice"),
        ("two.product()", "a product needs lists, as in product(x=[1, 2], y=[3, 4])"),
        ("two.product(x=[1], y=3)", "map goes over a list, or over what a job gave, not over 3"),
        ("one.map({1, 2})", "`x` is a set, which has no order; give sorted(...) of it"),
        ("one.map({'a': 1})", "give list(d.items()) or the like"),
        (
            "one.map([1], tolerate=1.5)",
            'tolerate is a number of iterations, or a part of them such as 0.1 or "10 %", not 1.5',
        ),
        ("one.map([1], tolerate='a few')", "tolerate is a number of iterations"),
        ("one.map([1], tolerate=-1)", "tolerate is a number of iterations"),
        ("one.map([1], max_parallel='4')", "max_parallel is a whole number"),
        ("one.options(on_failure='rm x').map([1])", "on_failure is one of finish, stop"),
        ("one.map(sample)", "is one file, and map goes over a list"),
        ("shell.map('echo {item}', [1], [2])", 'several lists have names here: shell.map("cmp {a} {b}", a=xs, b=ys)'),
        ("shell.map('echo {item}')", 'give a list to go over: shell.map("wc -l {item}", xs)'),
        ("shell.map('echo', [1])", "the command does not use `{item}`, so it would do the same for each"),
        ("shell.map('echo {itm}', [1])", "there is no element `{itm}` here (`{item}`)"),
        ("shell.map('echo ${item}', [1])", "`${item}` is a variable of the shell; the element is `{item}`"),
        (
            "shell.map('cat <<END\\n{item}\\nEND', [1])",
            '`{item}` cannot be quoted here; give it as env={"ITEM": "{item}"}',
        ),
        ("shell.map('x=$(cat <<END\\n{item}\\nEND\\n)', [1])", "`{item}` cannot be quoted here"),
        ("shell.map('echo \"${X:-{item}}\"', [1])", "`{item}` cannot be quoted here"),
        ("shell.map('print({item})', [1], shell='python')", "`{item}` cannot be quoted for `python`"),
        ("shell.product('sim {x}', x=[1], y=[2])", "the command does not use `{y}`"),
        ("shell('x', retries=Retry('4'))", "Retry: times is a whole number from 0 on, not '4'"),
        ("shell('x', retries=Retry(4, backoff=2))", "Retry has no `backoff`; that is `factor`, as in Retry(4, wait="),
        ("shell('x', retries=Retry(4, exit_code=75))", "Retry has no `exit_code`; that is `on`"),
        ("shell('x', retries=Retry(4, delay=3))", "Retry has no `delay`; that is `wait`"),
        ("shell('x', retries=Retry(4, speed=3))", "Retry has no `speed`; it is said as Retry(4"),
        ("one.map([1, 2], max_failures=1)", "may fail is tolerate=0.1, one in ten, or tolerate=3"),
        ("shell('x', retries=Retry(4, wait=3))", "Retry: wait is a duration such as"),
        ("shell('x', retries=Retry(4, factor=0.5))", "Retry: factor is a number from 1 on"),
        ("shell('x', retries=Retry(4, on='memry'))", "Retry: `memry` is no cause of failures"),
        (
            "shell('x', retries=Retry(4, on=0))",
            "Retry: an exit code from 1 to 255, or a cause, is expected here, not 0",
        ),
        ("shell('x', retries=Retry(4, on=2.5))", "Retry: on is an exit code"),
        (
            "shell('x', retries=[Retry(4), Retry(1, on=75)])",
            "a Retry without `on` takes all failures; it must be the last",
        ),
        ("shell('x', retries=[1, 10, 100])", 'waits that grow are Retry(3, wait="1 s", factor=2)'),
        ("shell('x', retries=Retry(4), retry_wait='1 s')", "retry_wait goes with a number of retries"),
        ("several(1).file('nope')", "`several` leaves no file `nope`; name it in its option files={...}"),
        ("several(1).file('tabel')", "`several` leaves no file `tabel`; name it in its option files={...} (`table`)"),
        ("several(1).file()", "`several` leaves 2 files; say which: table, log"),
        ("several.map([1]).file('nope')", "`several` leaves no file `nope`"),
        ("several.map([1]).files.nope", "`several` leaves no file `nope`"),
        ("got.file()", "`one` leaves no files; name it in its option files={...}"),
        ("inner(1).file('x')", "`inner` leaves no files; a called flow hands them on among its outputs"),
        ("task('P', role='e').file('x')", "`task` leaves no files"),
        ("one.map([1])['n']", "`one-2` gives a list, one result for each element, and has no `n`"),
        ("one.map([1]).n", "`one-2` gives a list, one result for each element, and has no `n`"),
        (
            "shell('x', inputs={'a.txt': several.map([1]).file('log')})",
            "is a list of files, one for each iteration, and `a.txt` is one file (`a.txt/`, a folder of them)",
        ),
        (
            "shell('x', inputs=[several(1).file('log')])",
            'a file of another job needs a place in this one: inputs={"in.txt": ...}',
        ),
        ("shell('x', inputs=['nope.sh'])", "there is no file `nope.sh` in "),
        ("shell('x', inputs=['wrok.py'])", "there is no file `wrok.py` in "),
        ("shell('x', inputs=3)", "inputs is a dict, or a list of paths, not 3"),
        ("shell('x', inputs={'../a': 'work.py'})", "inputs: `../a` must be a path inside the job's folder"),
        ("shell('x', files='/tmp/a')", "files: `/tmp/a` must be a path inside the job's folder"),
        ("shell('x', files={'a': 3})", "files: the path of `a` is a text, not 3"),
        (
            "shell(f'wc {sample}')",
            '`inputs.sample` is a file, which no text can hold; give it to the job as inputs={"in.txt": ...}',
        ),
        ("shell('wc %s' % several(1).file('log'))", "is a file, which no text can hold"),
        ("shell(f'echo {got!r}')", "stands in a text as {value}, not as {value!r}"),
        ("count(Path('nope.txt'))", "there is no file `nope.txt` in "),
        ("count('nope.txt')", "there is no file `nope.txt` in "),
        ("count(Path('*.py'))", "`*.py` may be several files, and `sample` is one; annotate it as list[Path]"),
        ("count(sample, more=Path('*.zip'))", "matches `*.zip`"),
        ("count(sample, more=[3])", "a list of files has paths, not 3"),
        ("inner(Path('work.py'))", "a file for another flow is an input of this one"),
        (
            "one({'a': Path('work.py')})",
            "argument 1 of one: its ['a'] is the path work.py inside of other data; give a file to a",
        ),
        (
            "one.options(when=got.failed > 3)(n)",
            "`.failed` of a job asks whether it failed, which only a condition can: when=x.failed; the part of its",
        ),
        ("one(got.failed)", 'the part of its result is x["failed"]'),
        ("shell(f'echo {got.skipped}')", 'the part of its result is x["skipped"]'),
        ("shell('x', needs=[got.failed])", "which only a condition can"),
        ("shell('x', needs=[n])", "needs and after take what jobs gave; `inputs.n` comes from none"),
        ("shell('x', when=got > 5 & n)", "`&` combines conditions, and 5 is none; put each comparison in parentheses"),
        ("shell('x', when=3)", "when is a condition such as rows > 3"),
        ("shell('x', when=f'{got} >')", "the expression ends too early"),
        ("shell('x', when=got == object())", "cannot stand in an expression; compare and compute with None"),
        ("one(got + 2 ** 70)", "cannot stand in an expression"),
        ("shell('')", "a command is a text"),
        ("job('a'.upper)()", "`str.upper` belongs to a value, and a pilot cannot import it"),
        ("job(lambda x: x)(3)", "is defined inside another function; move it to the top of its file"),
    ],
)
def test_what_cannot_work_is_told_before_anything_runs(tmp_path: Path, body: str, said: str) -> None:
    assert said in complaint(tmp_path, body)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "@flow(retries=3)\ndef f():\n    shell('x')\n",
            "a flow has no option `retries`; for all its jobs it is defaults={'retries': ...}",
        ),
        ("@flow(log_prints=True)\ndef f():\n    shell('x')\n", "a flow has no option `log_prints`; leave it out"),
        ("@flow(nmae='x')\ndef f():\n    shell('x')\n", "a flow has no option `nmae` (`name`)"),
        ("@flow(defaults={'memry': 1})\ndef f():\n    shell('x')\n", "a job has no option `memry` (`memory`)"),
        (
            "@flow(defaults={'name': 'x'})\ndef f():\n    shell('x')\n",
            "defaults hold for all jobs, and `name` is for one",
        ),
        ("@flow\nasync def f():\n    shell('x')\n", "the flow `f` is a generator or async; write a plain function"),
        ("@task\ndef f(): ...\n", "a function becomes a job with @job"),
        ("@job('align')\ndef f(): ...\n", "@job makes a function a job, and 'align' is none"),
        ("one.submit(3)\n", "AttributeError while the file was read: `one` has no `.submit`: call it, one(...)"),
        (
            "from mendflow import dag\n",
            "ImportError while the file was read: mendflow has no `dag`: a flow is made by @flow",
        ),
        ("from mendflow import unmapped\n", "job.map(xs, factor=2) gives the same factor to each element"),
        ("from mendflow import python_app\n", "a job is made by @job"),
        ("shell('x')\n", "shell(...) is for the body of a flow"),
        ("call('x.yaml')\n", "call(...) is for the body of a flow"),
    ],
)
def test_what_stands_outside_of_a_flow_is_told_too(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "work.py").write_text(TOP + text)
    with pytest.raises(BadFlow) as caught:
        load_python(tmp_path / "work.py")
    (problem,) = caught.value.problems
    assert said in problem.message + (f" ({problem.suggestion})" if problem.suggestion else "")


def test_the_package_says_what_it_has_and_no_more() -> None:
    script = "import mendflow as m; print(hasattr(m, 'nothing')); print(all(hasattr(m, name) for name in m.__all__))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
