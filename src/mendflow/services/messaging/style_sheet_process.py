"""The process that runs one style sheet.

It reads its task, gives up access to everything but its own output, runs, and writes the result. The limits are those
of the operating system: a process that may open nothing more can read or write no file, and open no connection."""

import resource
import sys
from typing import Final

import msgspec

from mendflow.core.xml.style_sheets import StyleSheetFailed, StyleSheetNotFound, transform
from mendflow.services.messaging.style_sheets import SheetLimits, SheetResult, SheetTask

STDERR: Final = 2
FIRST_SHEET: Final = '<xsl:stylesheet xmlns:xsl="http://www.w3.org/1999/XSL/Transform" version="1.0"/>'


def main() -> None:
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=SheetTask)
    transform({"first": FIRST_SHEET}, "first", "<a/>", ())  # loads all that is needed: the limits would prevent it
    apply_limits(task.bounds)
    sys.stdout.buffer.write(msgspec.json.encode(run_sheet(task)))
    sys.stdout.buffer.flush()


def apply_limits(bounds: SheetLimits) -> None:
    """From here on the process can open nothing, and start no process that could."""
    for kind, most in (
        (resource.RLIMIT_CPU, bounds.cpu_s),
        (resource.RLIMIT_AS, bounds.memory_bytes),
        (resource.RLIMIT_NOFILE, STDERR + 1),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def run_sheet(task: SheetTask) -> SheetResult:
    try:
        return SheetResult(value=transform(task.sheets, task.sheet, task.source, task.params))
    except StyleSheetNotFound:
        return SheetResult(fault="xsltStylesheetNotFound", message=f"the flow has no style sheet {task.sheet}")
    except StyleSheetFailed as failed:
        return SheetResult(fault="subLanguageExecutionFault", message=f"{task.sheet}: {failed}")
    except MemoryError:
        return SheetResult(
            fault="subLanguageExecutionFault", message=f"{task.sheet} took too much memory, and was stopped"
        )


if __name__ == "__main__":
    main()
