"""Flows in Python from the text of a function's body, as tests of their forms want them."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from mendflow.core.model.flow import Activity, Flow, ForEach, JobActivity, Parallel

TOP = """
from pathlib import Path
from mendflow import Retry, call, flow, job, shell, task

@job
def one(x: int) -> int:
    return x + 1

@job
def two(x: int, y: int = 10) -> int:
    return x * 100 + y

@job
def total(numbers: list) -> int:
    return sum(n for n in numbers if n is not None)

@job
def risky(n: int) -> float:
    return 10 / n

"""
Loader = Callable[..., Flow]


def parts(flow: Flow) -> dict[str, Activity]:
    assert isinstance(flow.body, Parallel)
    return {each.name: each for each in flow.body.branches}


def module_of(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("work_again", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["work_again"] = module
    spec.loader.exec_module(module)
    return module


def job_of(flow: Flow, name: str) -> JobActivity:
    found = parts(flow)[name]
    job = found.body if isinstance(found, ForEach) else found
    assert isinstance(job, JobActivity)
    return job
