"""Arrays of numpy as .npy files, and tables of pandas and polars as Parquet files.

None of these libraries is imported unless a value needs it: whoever gives an array has loaded numpy already."""

import base64
import importlib
import io
import sys
from types import ModuleType
from typing import Any, BinaryIO, Final

from mendflow.core.model.values import FileRef, Value
from mendflow.python_values.contents import ContentReader, ContentWriter
from mendflow.python_values.errors import BadPythonValue, name_of
from mendflow.python_values.tags import TAG, VALUE, tagged

NUMPY: Final = "numpy"
PANDAS_FRAME: Final = "pandas.DataFrame"
PANDAS_SERIES: Final = "pandas.Series"
POLARS_FRAME: Final = "polars.DataFrame"
POLARS_SERIES: Final = "polars.Series"
KINDS: Final = (NUMPY, PANDAS_FRAME, PANDAS_SERIES, POLARS_FRAME, POLARS_SERIES)
MAPPED_BYTES_MIN: Final = 1 << 20
"""Arrays from this size on are mapped into memory: what is not read is not loaded."""

UNNAMED: Final = "__mendflow_series__"
"""What a series without a name is called in its file."""


def loaded(library: str) -> ModuleType | None:
    return sys.modules.get(library)


def library_for(kind: str) -> ModuleType:
    """The library that a kind is of. One of three names, whatever was read."""
    assert kind in KINDS, "the caller has looked"
    name = kind.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise BadPythonValue(f"is a {kind}, and {name} cannot be imported where it is read: {error}") from None


def array_kind(value: Any) -> str:
    """Which kind of array or table this is, or nothing."""
    kind = type(value)
    library = loaded(kind.__module__.partition(".")[0])
    if library is None:
        return ""
    if library.__name__ == "numpy":
        return NUMPY if isinstance(value, library.ndarray) else ""
    if library.__name__ in ("pandas", "polars") and kind in (library.DataFrame, library.Series):
        return f"{library.__name__}.{kind.__name__}"
    return ""


def write_array(value: Any, kind: str, writer: ContentWriter) -> Value:
    if kind == NUMPY:
        return _write_numpy(value, writer)
    return writer.write(f"{kind.partition('.')[2].lower()}.parquet", kind, lambda file: _fill_table(value, kind, file))


def _write_numpy(array: Any, writer: ContentWriter) -> Value:
    numpy = library_for(NUMPY)
    if array.dtype.hasobject:
        raise BadPythonValue(
            "is an array of Python objects (dtype object), which only pickle could write; use a dtype of numpy's such"
            " as float64 or str, or return a list"
        )
    if isinstance(array, numpy.ma.MaskedArray):
        raise BadPythonValue(
            "is a masked array, of which a file would lose the mask; return it.filled(numpy.nan), or it.data and"
            " numpy.ma.getmaskarray(it) as two arrays"
        )
    if type(array) not in (numpy.ndarray, numpy.memmap):
        raise BadPythonValue(
            f"is a {name_of(type(array))}, of which a file would keep the numbers alone; return numpy.asarray(it)"
        )
    if array.nbytes > writer.inline_bytes:
        return writer.write("array.npy", NUMPY, lambda file: _fill_numpy(array, file))
    content = io.BytesIO()
    numpy.lib.format.write_array(content, numpy.asarray(array), allow_pickle=False)
    return tagged(NUMPY, base64.b64encode(content.getvalue()).decode())


def _fill_numpy(array: Any, file: BinaryIO) -> None:
    """Write the array as np.save does, its memory in one piece where it lies so: nothing is copied."""
    numpy = library_for(NUMPY)
    array = numpy.asarray(array)
    in_one_piece = array.flags.c_contiguous or array.flags.f_contiguous
    if not in_one_piece or not array.nbytes:
        numpy.lib.format.write_array(file, array, allow_pickle=False)
        return
    numpy.lib.format.write_array_header_2_0(file, numpy.lib.format.header_data_from_array_1_0(array))
    laid_out = array if array.flags.c_contiguous else array.T
    file.write(laid_out.reshape(-1).view(numpy.uint8).data)


def read_inline(value: dict[str, Value]) -> Any:
    content = io.BytesIO(base64.b64decode(value[VALUE], validate=True))
    return library_for(str(value[TAG])).lib.format.read_array(content, allow_pickle=False)


def read_array(ref: FileRef, kind: str, reader: ContentReader) -> Any:
    path, library = reader.local_path(ref), library_for(kind)
    try:
        return _read_numpy(library, path, ref) if kind == NUMPY else _read_table(library, kind, path)
    except (ValueError, EOFError) as error:
        raise BadPythonValue(f"is the file {ref.name}, which is no {kind}: {error}") from None


def _read_numpy(numpy: ModuleType, path: str, ref: FileRef) -> Any:
    """A large array is mapped: pages are loaded when they are used, and what is written to goes into memory of the
    process, never into the file."""
    if ref.bytes < MAPPED_BYTES_MIN:
        with open(path, "rb") as file:
            return numpy.lib.format.read_array(file, allow_pickle=False)
    return numpy.load(path, mmap_mode="c", allow_pickle=False).view(numpy.ndarray)


def _fill_table(value: Any, kind: str, file: BinaryIO) -> None:
    try:
        if kind == PANDAS_SERIES:
            value = value.to_frame(UNNAMED if value.name is None else value.name)
        if kind == POLARS_SERIES:
            value = value.to_frame()
        if kind.startswith("polars"):
            value.write_parquet(file)
        else:
            value.to_parquet(file, index=True)
    except ImportError:
        raise BadPythonValue(
            f"is a {kind}, which is passed on as a Parquet file; install pyarrow where the job runs, or return"
            " value.to_dict('list')"
        ) from None
    except Exception as error:  # noqa: BLE001 - each library has classes of its own for this
        raise BadPythonValue(
            f"is a {kind} that Parquet cannot hold ({error!s:.200}); convert its columns, or write a file and return"
            " its Path"
        ) from None


def _read_table(library: ModuleType, kind: str, path: str) -> Any:
    try:
        table = library.read_parquet(path)
    except ImportError as error:
        raise BadPythonValue(f"is a {kind}, and Parquet cannot be read where it is read: {error!s:.200}") from None
    if kind == PANDAS_SERIES:
        series = table.iloc[:, 0]
        return series.rename(None) if series.name == UNNAMED else series
    return table.to_series(0) if kind == POLARS_SERIES else table


def plain_number(value: Any) -> Value:
    """A single number of numpy as Python's own: conditions of a flow can compare it. Raises `BadPythonValue`."""
    numpy = loaded(NUMPY)
    assert numpy is not None, "it was given"
    special = (numpy.datetime64, numpy.timedelta64, numpy.longdouble, numpy.clongdouble, numpy.void)
    if not isinstance(value, special):
        return value.item()
    raise BadPythonValue(f"is a numpy.{type(value).__name__}; return it as an array, or as a value of Python's own")


def is_numpy_scalar(value: Any) -> bool:
    numpy = loaded(NUMPY)
    return numpy is not None and isinstance(value, numpy.generic)
