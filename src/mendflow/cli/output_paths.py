"""Checks the paths of results before anything runs, so that hours of work do not fail at a missing folder."""

import os
from pathlib import Path

from mendflow.cli.exit_codes import EnvironmentUnfit
from mendflow.pages.document import is_page


def check_file(word: str, path: Path | None) -> None:
    """Refuse a file that could not be written at the end."""
    if path is None:
        return
    if path.is_dir():
        raise EnvironmentUnfit(f"{word} {path} is a folder; name a file in it")
    if path.exists() and not os.access(path, os.W_OK):
        raise EnvironmentUnfit(f"{word} {path} cannot be written; choose another file")
    check_folder(word, path.parent, path)


def check_report(word: str, path: Path | None) -> None:
    """The same of a report, which takes the place of none but another report."""
    check_file(word, path)
    if path is not None:
        demand_replaceable(path, word)


def demand_replaceable(path: Path, word: str = "the report") -> None:
    """Refuse to write a report in place of a file that is none. An empty one has nothing to lose."""
    if path.is_file() and path.stat().st_size and not is_page(path):
        raise EnvironmentUnfit(f"{word} {path}: this file is no report of mendflow, and stays as it is; name another")


def check_folder(word: str, folder: Path | None, meant: Path | None = None) -> None:
    """Refuse a folder that could neither be created nor written to."""
    if folder is None:
        return
    there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists() or each.is_symlink())
    if not there.is_dir():
        raise EnvironmentUnfit(f"{word} {meant or folder}: {there} is not a folder; choose another place")
    if not os.access(there, os.W_OK | os.X_OK):
        raise EnvironmentUnfit(f"{word} {meant or folder}: {there} cannot be written to; choose another place")
