"""Runs style sheets, one process for each document, which may be killed.

A style sheet is a program that somebody else wrote: it may never end, or use all memory. So it runs where the operating
system limits its time, its memory and its output, where no file and no connection can be opened, and without the
server's environment. Whatever happens to that process, the flow gets a value or a fault."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal, Protocol

import msgspec

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.values import Value
from mendflow.services.base.module_processes import start_module

MIB: Final = 1 << 20
RUNNER_MODULE: Final = "mendflow.services.messaging.style_sheet_process"

log = logging.getLogger("mendflow.transforms")

Params = Sequence[tuple[str, Value]]


class SheetLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a style sheet. Its process uses some of the memory before it begins."""

    cpu_s: int = 10
    wall_s: float = 30.0
    memory_bytes: int = 1024 * MIB
    result_bytes: int = 10 * MIB
    at_once: int = 2


class SheetTask(msgspec.Struct, frozen=True, kw_only=True):
    """The input of the process."""

    sheets: dict[str, str]
    sheet: str
    source: str
    params: list[tuple[str, Value]]
    bounds: SheetLimits


class SheetResult(msgspec.Struct, frozen=True, kw_only=True):
    """The output of the process: a value, or the name of a fault and a sentence."""

    value: Value = None
    fault: Literal["", "xsltStylesheetNotFound", "subLanguageExecutionFault"] = ""
    message: str = ""


class Transformer(Protocol):
    """Transforms a document. `sheet` is the address of one of `sheets`, which are all that it may include. The result
    is an element, or a text where the sheet makes no element."""

    async def transform(
        self, sheets: Mapping[str, str], sheet: str, source: str, params: Params = ()
    ) -> Value | Fault: ...


class TransformCounter(Protocol):
    """Counts transformations by how they ended."""

    def add(self, *key: str) -> None: ...


class ProcessTransformer:
    """A transformer with one process for each document, a few of them at once."""

    def __init__(self, bounds: SheetLimits | None = None, counted: TransformCounter | None = None) -> None:
        self.bounds = bounds or SheetLimits()
        self._turn = asyncio.Semaphore(self.bounds.at_once)
        self._counted = counted

    async def transform(self, sheets: Mapping[str, str], sheet: str, source: str, params: Params = ()) -> Value | Fault:
        task = SheetTask(sheets=dict(sheets), sheet=sheet, source=source, params=list(params), bounds=self.bounds)
        async with self._turn:
            began = time.monotonic()
            made = await self._run(msgspec.json.encode(task))
        end = (made.name if isinstance(made, Fault) else "") or "made"
        if self._counted is not None:
            self._counted.add(end)
        log.debug("%s: %s after %.3f s", sheet, end, time.monotonic() - began)
        return made

    async def _run(self, given: bytes) -> Value | Fault:
        try:
            process = await start_module(RUNNER_MODULE, is_heard=False)
        except OSError as error:
            return _fault(f"no process can be started: {error.strerror}", Category.RESOURCE)
        assert process.stdin is not None and process.stdout is not None
        try:
            async with asyncio.timeout(self.bounds.wall_s):
                _, output = await asyncio.gather(_write_input(process.stdin, given), self._read_output(process.stdout))
                code = None if output is None else await process.wait()
        except TimeoutError:
            return _fault(f"the style sheet did not end within {self.bounds.wall_s:g} s", Category.TIME)
        finally:
            await _kill(process, process.stdout)
        if output is None or code is None:
            return _fault(f"the style sheet makes more than {self.bounds.result_bytes // MIB} MB")
        return _decode_result(output, code)

    async def _read_output(self, source: asyncio.StreamReader) -> bytes | None:
        """The whole output of the process; None if it is too large."""
        output = bytearray()
        while part := await source.read(1 << 16):
            output += part
            if len(output) > self.bounds.result_bytes:
                return None
        return bytes(output)


async def _write_input(target: asyncio.StreamWriter, given: bytes) -> None:
    with suppress(ConnectionError):  # its exit status tells why it did not read
        target.write(given)
        await target.drain()
    target.close()


async def _kill(process: asyncio.subprocess.Process, output: asyncio.StreamReader) -> None:
    """Kill the process and read the rest of its output; only then its end is known."""
    with suppress(ProcessLookupError):
        process.kill()
    while await output.read(1 << 16):
        pass
    await process.wait()


def _decode_result(output: bytes, code: int) -> Value | Fault:
    if code != 0:
        return _fault("the style sheet took too much time or memory, and was stopped", Category.TIME)
    try:
        made = msgspec.json.decode(output, type=SheetResult)
    except msgspec.DecodeError:
        return _fault("the style sheet took too much memory, and was stopped", Category.MEMORY)
    if made.fault:
        return Fault(name=made.fault, category=Category.FLOW, message=made.message)
    return made.value


def _fault(message: str, category: Category = Category.FLOW) -> Fault:
    return Fault(name="subLanguageExecutionFault", category=category, message=message)
