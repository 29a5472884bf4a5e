"""What a function changes in its process is gone when it ends: the next call of the same worker finds what a new
process would, and what a worker has loaded beforehand changes no result."""

import textwrap
from pathlib import Path

import pytest

from mendflow.core.model.faults import Category
from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import FunctionRef, JobSpec
from tests.pilot.conftest import Server

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEAD = "import decimal, json, locale, logging, os, random, signal, socket, sys, threading, time, warnings\n"

KINDS = {
    "a global": ("global N\nN = 2", "N", 1),
    "a list of the module": ("L.append(1)", "len(L)", 0),
    "an attribute of a class": ("C.x = 2", "C.x", 1),
    "a default argument": ("taken()", "taken()", 1),
    "a monkeypatched module": ("json.dumps = lambda value: 'patched'", "json.dumps(1)", "1"),
    "a builtin": ("import builtins\nbuiltins.added = 1", "'added' in dir(__builtins__)", False),
    "a variable": ("os.environ['LEFT'] = 'x'", "os.environ.get('LEFT')", None),
    "a variable of the process alone": ("os.putenv('LEFT', 'x')", "os.popen('echo [$LEFT]').read().strip()", "[]"),
    "the decimal context": ("decimal.getcontext().prec = 3", "decimal.getcontext().prec", 28),
    "the working folder": ("os.chdir('/')", "os.getcwd() == '/'", False),
    "filters of warnings": ("warnings.simplefilter('error')", "warnings.filters[0][0] == 'error'", False),
    "the locale": ("locale.setlocale(locale.LC_ALL, 'C')", "locale.setlocale(locale.LC_ALL) == 'C'", False),
    "the umask": ("os.umask(0o777)", "os.umask(0) == 0o777", False),
    "handlers of signals": (
        "signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
        "signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL",
        True,
    ),
    "the time-out of sockets": ("socket.setdefaulttimeout(7)", "socket.getdefaulttimeout()", None),
    "loggers": ("logging.basicConfig(level=1)", "len(logging.getLogger().handlers)", 0),
    "the path of modules": ("sys.path.insert(0, '/left')", "'/left' in sys.path", False),
    "the bound of recursion": ("sys.setrecursionlimit(5000)", "sys.getrecursionlimit() == 5000", False),
    "a thread": ("threading.Thread(target=time.sleep, args=(60,), daemon=True).start()", "threading.active_count()", 1),
}


@pytest.fixture
def server(staffed: Server) -> Server:
    """So that one worker has the calls of all tests, too."""
    return staffed


@pytest.mark.full
async def test_nothing_that_a_function_changes_is_there_for_the_next(server: Server) -> None:  # DU-2
    leaves, looks = "", ""
    for number, (leave, look, _) in enumerate(KINDS.values()):
        leaves += f"def leave{number}():\n{textwrap.indent(leave, '    ')}\n"
        looks += f"def look{number}():\n    return {look}\n"
    given = "N = 1\nL = []\nclass C: x = 1\ndef taken(kept=[]):\n    kept.append(1)\n    return len(kept)\n"
    source = HEAD + given + leaves + looks
    for number, (kind, (_, _, expected)) in enumerate(KINDS.items()):
        left = await server.outcome(await server.call(source, f"leave{number}"))
        assert left.ok, (kind, left.fault)
        assert (await server.outcome(await server.call(source, f"look{number}"))).outputs == expected, kind


async def test_random_numbers_are_seeded_by_nobody_before(server: Server) -> None:  # DU-2
    """A seed that another call has left would give the same numbers; so would a worker that all calls are forked
    from."""
    source = "import random\ndef seed(): random.seed(1)\ndef draw(): return random.random()"
    drawn = []
    for _ in range(3):
        await server.outcome(await server.call(source, "seed"))
        drawn.append((await server.outcome(await server.call(source, "draw"))).outputs)
    assert len(set(drawn)) == 3


async def test_a_seed_that_a_module_sets_holds_for_each_of_its_calls(server: Server) -> None:  # DU-2
    source = "import random\nrandom.seed(7)\ndef draw(): return random.random()"
    drawn = [(await server.outcome(await server.call(source, "draw"))).outputs for _ in range(3)]
    assert len(set(drawn)) == 1


async def test_a_module_is_imported_with_the_variables_of_each_call(server: Server, tmp_path: Path) -> None:
    # DU-2: also a module that the worker has loaded already
    source = "import os, wave, xml.dom\nAT_IMPORT = os.environ.get('LABEL')\ndef f(): return AT_IMPORT"
    (tmp_path / "labelled.py").write_text(source)
    function = FunctionRef(module="labelled", name="f", code=server.keep(source.encode()), folder=str(tmp_path))
    for label in ("", "one", "two", ""):
        spec = JobSpec(item=ItemId("i"), function=function, env={"LABEL": label} if label else {})
        outcome = await server.outcome(await server.submit(spec))
        assert outcome.ok and outcome.outputs == (label or None), outcome.fault


async def test_what_python_reads_when_it_starts_is_that_of_the_call(server: Server) -> None:  # DU-2
    source = "import time\ndef f(): return time.strftime('%Z', time.localtime(0))"
    zones = []
    for env in ({"TZ": "EST5"}, {"TZ": "CET-1"}):
        zones.append((await server.outcome(await server.call(source, "f", env=env))).outputs)
    assert zones == ["EST", "CET"]


async def test_an_installed_module_that_a_call_has_loaded_does_not_hide_one_beside_another_flow(
    server: Server, tmp_path: Path
) -> None:  # DU-2
    user = "def f():\n    import wave\n    return hasattr(wave, 'open')"
    for place, expected in (("plain", True), ("own", False), ("plain", True)):
        folder = tmp_path / place
        folder.mkdir(exist_ok=True)
        (folder / "user.py").write_text(user)
        if place == "own":
            (folder / "wave.py").write_text("MINE = 1\n")
        function = FunctionRef(module="user", name="f", code=server.keep(user.encode()), folder=str(folder))
        outcome = await server.outcome(await server.submit(JobSpec(item=ItemId("i"), function=function)))
        assert outcome.ok and outcome.outputs is expected, outcome.fault


async def test_a_list_of_a_plain_module_is_empty_for_each_call(server: Server) -> None:  # DU-2
    """Such a function runs in the worker itself, with a list of its own."""
    source = "import os\nKEPT = []\ndef f(x):\n    KEPT.append(x)\n    return KEPT\ndef g(): return os.getpid()"
    for number in range(3):
        assert (await server.outcome(await server.call(source, "f", number))).outputs == [number]


async def test_calls_share_a_worker_and_no_process(server: Server) -> None:
    source = "import os\ndef f(): return [os.getppid(), os.getpid()]"
    first, second = [(await server.outcome(await server.call(source, "f"))).outputs for _ in range(2)]
    assert isinstance(first, list) and isinstance(second, list)
    assert first[0] == second[0] and first[1] != second[1]


async def test_what_is_to_be_done_at_exit_is_done_before_the_outputs_are_taken(server: Server) -> None:
    source = "import atexit\ndef f():\n    atexit.register(print, 'at exit')\n    return 1"
    outcome = await server.outcome(await server.call(source, "f"))
    assert outcome.outputs == 1 and outcome.log_tail == "at exit\n"


@pytest.mark.full
async def test_a_function_that_ends_its_process_costs_itself_alone(server: Server) -> None:
    source = "import os\ndef end(): os._exit(3)\ndef f(): return 1"
    jobs = [await server.call(source, name) for name in ("f", "end", "f")]
    first, ended, last = [await server.outcome(job) for job in jobs]
    assert first.ok and last.ok
    assert ended.fault is not None and ended.fault.category is Category.JOB and ended.fault.exit_code == 3
