"""Which functions run in the worker itself: those whose text shows that they leave nothing."""

import pytest

from mendflow.pilot.worker.stateless_functions import stateless_function

JOB = "from mendflow import job\n"


@pytest.mark.parametrize(
    ("source", "given", "expected"),
    [
        ("def f(x): return x + 1", [1], 2),
        ("def f(x: int, y: int = 2) -> int:\n    return x * y", [3], 6),
        (JOB + "@job\ndef f(text: str): return len(text.split('.'))", ["a.b"], 2),
        (JOB + "@job(retries=2)\ndef f(xs): return {'n': sum(xs), 'of': len(xs)}", [[1, 2]], {"n": 3, "of": 2}),
        ("import os\nKEPT = []\ndef g(): KEPT.append(1)\ndef f(x): return sorted(x)", [[2, 1]], [1, 2]),
        ("def f(xs):\n    n = 0\n    for x in xs:\n        if x > 1: n += x\n    return f'{n:>3}'", [[1, 2]], "  2"),
        ("def f(xs): return [x for x in xs if (y := x) % 2]", [[1, 2, 3]], [1, 3]),
        ("RATE, OF = 1, 2\nN = -3\nT = ('a', 1)\ndef f(x): return x * N + len(T)", [1], -1),
        ("import math\ndef f(x): return math.floor(x + math.pi)", [1], 4),
        ("import json, time\ndef f(x):\n    time.sleep(0)\n    return json.loads(json.dumps(x))", [[1]], [1]),
        ("def len(x): return 0\ndef f(x): return len(x)", [[1]], 0),
        ("def g(x): return x + 1\ndef f(x): return g(g(x))", [1], 3),
        ("def f(n): return n if n < 2 else f(n - 1) + f(n - 2)", [7], 13),
        (
            "def f(x):\n    try: return 1 / x\n    except ZeroDivisionError as error: return str(error)",
            [0],
            "division by zero",
        ),
    ],
)
def test_a_plain_computation_is_stateless(source: str, given: list[object], expected: object) -> None:
    make = stateless_function(source.encode(), "f")
    assert make is not None and make()(*given) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("N = [1]\ndef f(): return N", [1]),
        ("KEPT = []\ndef g(): KEPT.append(1)\ndef f():\n    g()\n    return KEPT", [1]),
        ("N = ([], 2)\ndef f():\n    N[0].append(1)\n    return N[0]", [1]),
        ("D = {'a': [1]}\ndef f():\n    D['a'].append(2)\n    D['b'] = 1\n    return D", {"a": [1, 2], "b": 1}),
        (JOB + "import os\nKEPT = []\n@job(retries=1)\ndef f():\n    KEPT.append(1)\n    return len(KEPT)", 1),
        ("S = {1}\ndef f():\n    S.add(len(S) + 1)\n    return sorted(S)\nif __name__ == '__main__': f()", [1, 2]),
    ],
)
def test_data_of_the_module_are_made_anew_for_each_call(source: str, expected: object) -> None:  # DU-2
    make = stateless_function(source.encode(), "f")
    assert make is not None
    assert [make()() for _ in range(3)] == [expected] * 3


@pytest.mark.parametrize(
    "between",
    [
        "KEPT.append(1)",
        "KEPT[0:] = [1]",
        "del KEPT[:]",
        "OTHER = KEPT.append(1)",
        "def g(): KEPT.append(1)\ng()",
        "def g(x=KEPT.append(1)): pass",
        "def g(x: KEPT.append(1)): pass",
        "@KEPT.append\ndef g(): pass",
        "def keep(g):\n    KEPT.append(g)\n    return g\n@keep\ndef g(): pass",
        JOB + "@job(tries=KEPT.append(1))\ndef g(): pass",
        JOB + "def job(g): return KEPT.append(g)\n@job\ndef g(): pass",
        JOB + "job = KEPT.append\n@job\ndef g(): pass",
        "class C: KEPT.append(1)",
        "for n in range(3): KEPT.append(n)",
        "with open('x') as file: KEPT.append(file.read())",
        "import beside_the_flow",
        "from . import beside_the_flow",
        "KEPT += [1]",
        "KEPT = [1]",
        "def g():\n    global KEPT\n    KEPT = 1",
        "if True: KEPT.append(1)",
        "(KEPT := [1])",
    ],
)
def test_data_that_the_module_may_have_changed_when_it_was_imported_are_not(between: str) -> None:  # DU-2
    source = f"KEPT = []\n{between}\ndef f(): return len(KEPT)"
    assert stateless_function(source.encode(), "f") is None


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    global N\n    N = 1",
        "import os\ndef f(): return os.getcwd()",
        "def f():\n    import os",
        "def f(kept=[]): kept.append(1)",
        "def f(x): return open(x).read()",
        "def f(x): return x.read_text()",
        "def f(x): return x.__class__",
        "def f(x): x.a = 1",
        "def f(x): return eval(x)",
        "def f(x): return getattr(x, 'y')",
        "import functools\n@functools.cache\ndef g(x): return x\ndef f(x): return g(x)",
        "def f(): return f",
        "def g(): pass\ndef f(): return g",
        "N = 1\nN = 2\ndef f(): return N",
        "import json\ndef f(x): return json",
        "import json\ndef f(x): return json.decoder",
        "import random\ndef f(x): return random.random()",
        "import math\nmath = 1\ndef f(x): return math.floor(x)",
        "def f(x): return (lambda: x)()",
        "def f(x):\n    with x: pass",
        "async def f(x): return x",
        "def f(x):\n    yield x",
        "from other import len\ndef f(x): return len(x)",
        "from other import *\ndef f(x): return len(x)",
        "def f(x): return 1\nf = print",
        "if True:\n    def f(x): return 1",
        "import functools\n@functools.cache\ndef f(x): return x",
        "def job(f): return f\n@job\ndef f(x): return x",
        "from elsewhere import job\n@job\ndef f(x): return x",
        "def g():\n    global len\n    len = 1\ndef f(x): return len(x)",
        "globals()['len'] = 1\ndef f(x): return len(x)",
        "def f(x): return x +",
        "class f: pass",
    ],
)
def test_whatever_may_read_or_keep_something_is_not(source: str) -> None:
    assert stateless_function(source.encode(), "f") is None
