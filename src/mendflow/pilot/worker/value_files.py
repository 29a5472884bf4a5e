"""Files of values: where the contents lie of what a function gets and gives, arrays, bytes and files by their paths."""

import hashlib
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final, cast

from mendflow.core.model.values import CONTENT_KIND, FileRef, Value, is_executable
from mendflow.pilot.cache.entries import copy, kept_path
from mendflow.python_values.contents import Fill
from mendflow.python_values.errors import BadPythonValue
from mendflow.python_values.tags import PATH

INLINE_BYTES: Final = 4096
"""What is shorter travels with the result: a file would cost more."""

MADE: Final = ".mendflow.made"
GIVEN: Final = ".mendflow.given"
CHUNK_BYTES: Final = 1 << 22


class _HashedFile:
    """A file that is hashed while it is written: each piece by a second thread, so that the slower of both counts."""

    def __init__(self, file: BinaryIO, hashing: ThreadPoolExecutor) -> None:
        self._file = file
        self._hashing = hashing
        self.digest = hashlib.sha256()
        self.bytes = 0

    def write(self, content: bytes | memoryview) -> int:
        view = memoryview(content).cast("B") if not isinstance(content, bytes) else memoryview(content)
        for start in range(0, len(view), CHUNK_BYTES):
            part = view[start : start + CHUNK_BYTES]  # both read it while it is in the processor's cache
            if len(part) < CHUNK_BYTES:
                self.digest.update(part)
                self._file.write(part)
                continue
            hashed = self._hashing.submit(self.digest.update, part)
            try:
                self._file.write(part)
            finally:
                hashed.result()  # the caller may change its memory as soon as it is written
        self.bytes += len(view)
        return len(view)

    def flush(self) -> None:
        self._file.flush()

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    @property
    def closed(self) -> bool:
        return self._file.closed

    def close(self) -> None:
        """Whoever opened it closes it."""

    def tell(self) -> int:
        return self.bytes


class MadeFiles:
    """What the result of a call refers to, in the folder of its attempt: `paths` and `refs` side by side."""

    inline_bytes = INLINE_BYTES

    def __init__(self, attempt_folder: str) -> None:
        self._folder = attempt_folder
        self._taken: dict[str, Value] = {}
        self.paths: list[str] = []
        self.refs: list[FileRef] = []

    def write(self, name: str, kind: str, fill: Fill) -> Value:
        path = self._new_path(name)
        with open(path, "wb") as file, ThreadPoolExecutor(1, thread_name_prefix="mendflow-hash") as hashing:
            hashed = _HashedFile(file, hashing)
            fill(cast(BinaryIO, hashed))
        return self._add(path, FileRef(sha256=hashed.digest.hexdigest(), bytes=hashed.bytes, name=name), kind)

    def take(self, path: Path) -> Value:
        known = os.path.abspath(path)
        if known not in self._taken:
            self._taken[known] = self._take(path)
        return self._taken[known]

    def _take(self, path: Path) -> Value:
        if path.is_dir():
            raise BadPythonValue(
                f"is the path of the folder {path}; return a list of the files in it, or name it where the job is"
                ' defined, @job(files="FOLDER/"); for the mere path return str(path)'
            )
        if not path.is_file():
            raise BadPythonValue(
                f"is the path {path}, and there is no such file when the job has ended; for the mere path return"
                " str(path)"
            )
        place = os.path.realpath(path)
        if not place.startswith(os.path.realpath(self._folder) + os.sep):
            place = self._brought(path)
        with open(place, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            status = os.fstat(file.fileno())
        ref = FileRef(sha256=digest, bytes=status.st_size, name=path.name, executable=is_executable(status.st_mode))
        return self._add(place, ref, PATH)

    def _brought(self, path: Path) -> str:
        """A copy in the folder of the attempt, or the file itself if it lies where the next call works."""
        target = self._new_path(path.name)
        is_own = os.path.realpath(path).startswith(os.path.realpath(os.getcwd()) + os.sep)
        if is_own and not path.is_symlink():
            shutil.move(path, target)
        else:
            shutil.copy(path, target)
        return target

    def _new_path(self, name: str) -> str:
        folder = os.path.join(self._folder, MADE, str(len(self.paths)))
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, name)

    def _add(self, path: str, ref: FileRef, kind: str) -> Value:
        self.paths.append(path)
        self.refs.append(ref)
        return {**ref.as_value(), CONTENT_KIND: kind}


class GivenFiles:
    """What the arguments of a call refer to: it lies in the pilot's cache while the call runs."""

    def __init__(self, cache: str) -> None:
        self._cache = cache
        self._copies = 0

    def local_path(self, ref: FileRef) -> str:
        return kept_path(self._cache, ref.sha256)

    def own_copy(self, ref: FileRef) -> Path:
        """A copy in the folder of the job, which may do with it what it likes."""
        name = os.path.basename(ref.name) or "file"
        self._copies += 1
        folder = os.path.join(GIVEN, str(self._copies))
        os.makedirs(folder, exist_ok=True)
        target = os.path.join(folder, name if name not in (".", "..") else "file")
        copy(self.local_path(ref), target)
        os.chmod(target, 0o755 if ref.executable else 0o644)
        return Path(target)
