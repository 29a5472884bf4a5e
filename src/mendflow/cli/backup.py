"""`mendflow admin backup` and `restore`: the whole store, while servers work on it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli.connection import run_async
from mendflow.cli.options import Data, Json, ServerTarget, Store
from mendflow.cli.printing import print_answer
from mendflow.maintenance import SECRETS_KEY_FILE, Backup, back_up
from mendflow.maintenance import restore as restore_store
from mendflow.pages.formatting import size_text

app = typer.Typer()


@app.command("backup")
def backup(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder for the copy.")],
    store: Store = "",
    data: Data = "",
    json: Json = False,
) -> None:
    """Copy the whole store as it is now, with its files; servers go on working."""
    source = ServerTarget(data=data).folder
    made = back_up(store, source, folder)
    key = source / SECRETS_KEY_FILE
    beside = f". The key of its secrets is not in it: keep a copy of {key} elsewhere" if key.exists() else ""
    print_answer(json, made, f"{folder} has {_told(made)}{beside}")


@app.command("restore")
def restore(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder that mendflow admin backup made.")],
    store: Store = "",
    data: Data = "",
    json: Json = False,
) -> None:
    """Make a store of a backup: in a data folder without one, or in an empty database."""
    to = ServerTarget(data=data).own_folder
    made, file = run_async(restore_store(folder, store, to))
    said = (
        f"{file or 'the database'} has {_told(made)}. Cases that ran then continue when a server starts on it:"
        " stop the servers of the original first"
    )
    print_answer(json, made, said)


def _told(made: Backup) -> str:
    moment = datetime.fromtimestamp(made.taken_at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    files = f" and {made.files} files of {size_text(made.file_bytes)}" if made.files else ""
    return f"the store of {moment}: {made.documents} documents, {made.entries} entries{files}"
