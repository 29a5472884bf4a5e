"""What a function reads that its job does not name is told with its outcome, and nothing else is."""

import socket
from pathlib import Path
from typing import TypeVar

import pytest

from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import FunctionRef, JobSpec, Outcome
from tests.pilot.conftest import Server

pytestmark = pytest.mark.asyncio(loop_scope="module")

Case = TypeVar("Case")
GROUP = 8

HEAD = "import ctypes, glob, os, runpy, shutil, socket, sqlite3, subprocess, sys, tempfile, threading\n"


@pytest.fixture
def server(staffed: Server) -> Server:
    """What is told of a call depends on the call alone."""
    return staffed


def write(folder: Path, module: str, body: str) -> str:
    folder.mkdir(exist_ok=True)
    lines = body.replace("OUT", str(folder.parent / "out")).splitlines()
    source = HEAD + "def f():\n" + "".join(f"    {line}\n" for line in lines)
    (folder / f"{module}.py").write_text(source)
    return source


async def call(
    server: Server, folder: Path, body: str, *, module: str = "given", env: dict[str, str] | None = None
) -> Outcome:
    """Call a function with this body, of a flow in this folder."""
    source = write(folder, module, body)
    function = FunctionRef(module=module, name="f", code=server.keep(source.encode()), folder=str(folder))
    spec = JobSpec(item=ItemId("i"), function=function, env=env or {})
    outcome = await server.outcome(await server.submit(spec))
    assert outcome.ok, outcome.fault
    return outcome


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with data outside of the flow's."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "data.txt").write_text("1")
    (folder / "extlib.py").write_text("V = 1\n")
    return folder


TOLD = [
    ("return open('OUT/data.txt').read()", "it read OUT/data.txt, which is none of its inputs: declare it"),
    ("return open(b'OUT/data.txt', 'r+').read()", "it read OUT/data.txt,"),
    ("return os.read(os.open('OUT/data.txt', os.O_RDONLY), 9).decode()", "it read OUT/data.txt,"),
    ("return shutil.copy('OUT/data.txt', 'x')", "it read OUT/data.txt,"),
    ("os.symlink('OUT/data.txt', 'x')\nreturn open('x').read()", "it read OUT/data.txt,"),
    ("open('OUT/data.txt', 'a').write('x')\nreturn open('OUT/data.txt').read()", "it read OUT/data.txt,"),
    ("os.makedirs('OUT', exist_ok=True)\nreturn open('OUT/data.txt').read()", "it read OUT/data.txt,"),
    ("try: open('OUT/none')\nexcept OSError: return 1", "it read OUT/none,"),
    ("return os.path.exists('OUT/data.txt')", "it looked at OUT/data.txt, which is none of its inputs"),
    ("return os.path.isfile('OUT/none')", "it looked at OUT/none,"),
    ("return os.stat('OUT/data.txt').st_size", "it looked at OUT/data.txt,"),
    ("return os.access('OUT/data.txt', os.R_OK)", "it looked at OUT/data.txt,"),
    ("try: os.readlink('OUT/data.txt')\nexcept OSError: return 1", "it looked at OUT/data.txt,"),
    ("import pathlib\nreturn pathlib.Path('OUT/data.txt').exists()", "it looked at OUT/data.txt,"),
    ("import pathlib\nreturn pathlib.Path('OUT/data.txt').stat().st_size", "it looked at OUT/data.txt,"),
    ("import pathlib\nreturn str(pathlib.Path('~/x').expanduser())", "it uses $HOME, which it does not set itself"),
    ("import getpass\nreturn getpass.getuser()", "it uses $LOGNAME, which it does not set itself"),
    ("return socket.gethostname()", "it asked for the name of its machine"),
    ("return os.listdir('OUT')", "it read OUT,"),
    ("return [each.name for each in os.scandir('OUT')]", "it read OUT,"),
    ("return glob.glob('OUT/*.txt')", "it read OUT"),
    ("return [files for _, _, files in os.walk('OUT')]", "it read OUT,"),
    ("os.chdir('OUT')\nreturn subprocess.getoutput('cat data.txt')", "it read OUT,"),
    ("sys.path.append('OUT')\nimport extlib\nreturn extlib.V", "it loaded OUT/extlib.py, which is not beside"),
    ("return runpy.run_path('OUT/extlib.py')['V']", "OUT/extlib.py, which is"),
    ("return subprocess.getoutput('cat OUT/data.txt')", "it names OUT/data.txt, which is none of its inputs"),
    ("return subprocess.check_output(['cat', 'OUT/data.txt']).decode()", "it names OUT/data.txt,"),
    ("return subprocess.check_output(['cat', 'data.txt'], cwd='OUT').decode()", "it read OUT,"),
    ("return subprocess.getoutput('echo $MODE')", "it uses $MODE, which it does not set itself"),
    ("return subprocess.call(['timeout', '5', 'curl', 'localhost:1'], stderr=-3)", "it runs curl, which gets"),
    ("return os.system('cat ../x; true')", "it names ../x,"),
    ("return os.spawnlp(os.P_WAIT, 'cat', 'cat', 'OUT/data.txt')", "it names OUT/data.txt,"),
    ("return str(sqlite3.connect('OUT/data.db'))", "it read OUT/data.db,"),
    ("try: ctypes.CDLL('OUT/lib.so')\nexcept OSError: return 1", "it read OUT/lib.so,"),
    ("return os.environ['HOME']", "it uses $HOME, which it does not set itself"),
    ("return os.getenv('MODE')", "it uses $MODE,"),
    ("return str(os.getenvb(b'MODE'))", "it uses $MODE,"),
    ("return 'MODE' in os.environ", "it uses $MODE,"),
    ("return os.path.expanduser('~')", "it uses $HOME,"),
    ("return len(dict(os.environ))", "it reads the whole environment,"),
    ("return os.environ['MENDFLOW_CASE']", "it uses $MENDFLOW_CASE, which is another in each case"),
    ("return open('/proc/self/environ').read()", "it read /proc/self/environ,"),
]


def in_groups(cases: list[Case]) -> list[list[Case]]:
    """Few tests of several calls each: a test costs more than some of these calls."""
    return [cases[begin : begin + GROUP] for begin in range(0, len(cases), GROUP)]


@pytest.mark.parametrize("cases", in_groups(TOLD))
async def test_what_a_function_reads_elsewhere_is_told(
    server: Server, tmp_path: Path, out: Path, cases: list[tuple[str, str]]
) -> None:  # DU-2
    for number, (body, told) in enumerate(cases):
        outcome = await call(server, tmp_path / "flow", body, module=f"given{number}")
        assert told.replace("OUT", str(out)) in outcome.undeclared_reads, body


async def test_a_connection_of_a_function_is_told(server: Server, tmp_path: Path) -> None:  # DU-2
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        body = f"socket.create_connection(('127.0.0.1', {port})).close()"
        told = (await call(server, tmp_path / "flow", body)).undeclared_reads
    assert told == f"it got data from 127.0.0.1:{port}, which may have changed"


@pytest.mark.full
@pytest.mark.parametrize(
    "body",
    [
        "started = threading.Thread(target=lambda: open('OUT/data.txt').close())\nstarted.start()\nstarted.join()",
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor() as pool: pool.submit(open, 'OUT/data.txt').result().close()",
        "child = os.fork()\nif not child:\n    open('OUT/data.txt').close()\n    os._exit(0)\nos.waitpid(child, 0)",
    ],
)
async def test_threads_and_forked_processes_of_a_function_count_as_the_function(
    server: Server, tmp_path: Path, out: Path, body: str
) -> None:  # DU-2
    assert f"it read {out}/data.txt" in (await call(server, tmp_path / "flow", body)).undeclared_reads
    assert (await call(server, tmp_path / "flow", "return 1", module="other")).undeclared_reads == ""


async def test_each_call_that_starts_another_python_is_told(server: Server, tmp_path: Path) -> None:
    # DU-2: nobody sees what that one reads
    body = (
        "import multiprocessing\nchild = multiprocessing.get_context('spawn').Process(target=print)\n"
        "child.start()\nchild.join()"
    )
    for module in ("one", "two"):
        assert (
            "it started another Python" in (await call(server, tmp_path / "flow", body, module=module)).undeclared_reads
        )


NOT_TOLD = [
    "return os.path.exists('none')",
    "open('x', 'w').close()\nreturn os.path.getsize('x')",
    "import pathlib\nreturn pathlib.Path('x').resolve().exists()",
    "return os.path.realpath('x/y/..') == ''",
    "return os.path.isdir('/')",
    "return [os.path.isfile(__file__), os.path.isdir(os.path.dirname(__file__))]",
    "return shutil.which('sh') is None",
    "os.makedirs('OUT/mine')\nreturn os.path.isdir('OUT/mine')",
    "shutil.rmtree(tempfile.mkdtemp())",
    "open('a', 'w').write('1')\nreturn open(os.path.abspath('a')).read() + str(os.listdir()) + str(glob.glob('*'))",
    "folder = tempfile.mkdtemp()\nopen(folder + '/x', 'w').write('1')\nreturn open(folder + '/x').read()",
    "folder = tempfile.mkdtemp()\nopen(folder + '/x', 'w').write('1')\n"
    "return subprocess.check_output(['sort', folder + '/x']).decode() + subprocess.getoutput(f'sort {folder}/x')",
    "with tempfile.NamedTemporaryFile('w') as file: return open(file.name).read()",
    "with tempfile.TemporaryFile('w+') as file: return file.read()",
    "import csv, email.mime.text, xml.dom.minidom\nreturn 1",
    "import zoneinfo\nreturn str(zoneinfo.ZoneInfo('Europe/Berlin'))",
    "open('a', 'w').close()\nreturn subprocess.getoutput(f'sort {os.getcwd()}/a 2>/dev/null | sed s/a/b/')",
    "return subprocess.call([sys.executable, '-c', 'print(1)'])",
    "db = sqlite3.connect(':memory:')\nsqlite3.connect('own.db').close()\nreturn 1",
    "return [os.environ['KNOWN'], os.environ.get('PATH'), os.environ.get('TMPDIR')]",
    "os.environ['NEW'] = '1'\nreturn os.environ['NEW'] + subprocess.getoutput('echo $NEW $KNOWN')",
    "return subprocess.check_output('echo $HERE', shell=True, env={'HERE': '1'}).decode()",
    "return open(os.devnull).read() + open('/proc/self/stat').read()[:0]",
    "import argparse, locale, logging, platform\nplatform.processor()\nargparse.ArgumentParser().format_help()",
    "import warnings\nwarnings.warn('x')\nreturn 1",
    "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as pool: return pool.map(abs, [1])",
]


@pytest.mark.parametrize("bodies", in_groups(NOT_TOLD))
async def test_what_is_the_functions_own_or_pythons_is_not_told(
    server: Server, tmp_path: Path, bodies: list[str]
) -> None:  # DU-2
    for number, body in enumerate(bodies):
        outcome = await call(server, tmp_path / "flow", body, module=f"given{number}", env={"KNOWN": "1"})
        assert outcome.undeclared_reads == "", body


async def test_a_call_is_told_nothing_of_the_calls_before_it(server: Server, tmp_path: Path, out: Path) -> None:  # DU-2
    flow = tmp_path / "flow"
    assert (await call(server, flow, "return open('OUT/data.txt').read()")).undeclared_reads
    assert (await call(server, flow, "return 1", module="other")).undeclared_reads == ""


async def test_each_call_that_imports_a_module_from_elsewhere_is_told(
    server: Server, tmp_path: Path, out: Path
) -> None:
    """Each loads it anew, and finds nothing of what another did to it."""
    body = "sys.path.append('OUT')\nimport extlib\nextlib.V += 1\nimport extlib as again\nreturn again.V"
    for module, value in (("one", 2), ("two", 2)):
        outcome = await call(server, tmp_path / "flow", body, module=module)
        assert outcome.outputs == value and f"it loaded {out}/extlib.py" in outcome.undeclared_reads
    assert (await call(server, tmp_path / "flow", "return 1", module="other")).undeclared_reads == ""


@pytest.mark.full
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("V = open('OUT/data.txt').read()", "it read OUT/data.txt, which is none of its inputs"),
        ("V = os.environ.get('MODE')", "it uses $MODE, which it does not set itself"),
        ("sys.path.append('OUT')\nfrom extlib import V", "it loaded OUT/extlib.py, which is not beside the flow"),
    ],
)
async def test_what_a_module_reads_when_it_is_imported_is_told_of_each_call(
    server: Server, tmp_path: Path, out: Path, line: str, told: str
) -> None:  # DU-2
    flow = tmp_path / "flow"
    flow.mkdir()
    source = f"{HEAD}{line.replace('OUT', str(out))}\ndef f(): return V\ndef g(): return V\n"
    (flow / "reads.py").write_text(source)
    for name in ("f", "g", "f"):
        function = FunctionRef(module="reads", name=name, code=server.keep(source.encode()), folder=str(flow))
        outcome = await server.outcome(await server.submit(JobSpec(item=ItemId("i"), function=function)))
        assert outcome.ok and told.replace("OUT", str(out)) in outcome.undeclared_reads
