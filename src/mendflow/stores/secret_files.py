"""The key of the secrets in the store, in a file that its owner alone can read; and secrets in files of a folder, or in
environment variables of the server."""

import glob
import os
import secrets
import stat
import time
from pathlib import Path
from typing import Final

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.secrets import FoundSecret, variable_of

SECRETS_KEY_FILE: Final = "secrets.key"
"""In the data folder, unless another is given."""
KEY_CHARS_MIN: Final = 32
KEY_BYTES_MAX: Final = 64 << 10
DRAFT_END: Final = ".draft"
DRAFT_OLD_S: Final = 60
ENVIRONMENT: Final = "env:"


class SecretFiles:
    """`sources` are folders with a file for each secret, or `env:PREFIX_` for the variables of that beginning: the
    secret `api-token` is PREFIX_API_TOKEN. The first that has it counts."""

    def __init__(self, key_file: Path, sources: tuple[str, ...] = ()) -> None:
        self._key_file = key_file
        self._sources = sources
        for source in sources:
            if not source.startswith(ENVIRONMENT) and not Path(source).is_dir():
                raise InvalidRequest(f"there is no folder {source} to read secrets from; env:PREFIX_ reads variables")

    @property
    def key_place(self) -> str:
        return str(self._key_file)

    def key(self, *, create: bool = False) -> str:
        try:
            found = os.open(self._key_file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return self._made() if create else ""
        except OSError as error:
            raise InvalidRequest(
                f"the key of the secrets, {self._key_file}, cannot be read: {error.strerror}"
            ) from None
        try:
            mode = os.fstat(found).st_mode
            if not stat.S_ISREG(mode):
                raise InvalidRequest(f"the key of the secrets, {self._key_file}, cannot be read: it is no file")
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise InvalidRequest(f"{self._key_file} can be read by others: chmod 600 {self._key_file}")
            key = os.read(found, KEY_BYTES_MAX).decode().strip()
        except UnicodeDecodeError:
            raise InvalidRequest(f"{self._key_file} holds no key: it is no text") from None
        finally:
            os.close(found)
        if len(key) < KEY_CHARS_MIN:
            raise InvalidRequest(f"{self._key_file} holds no key: it has less than {KEY_CHARS_MIN} characters")
        return key

    def _made(self) -> str:
        self._key_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._remove_old_drafts()
        draft = self._key_file.with_name(f"{self._key_file.name}.{secrets.token_hex(8)}{DRAFT_END}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, self._key_file)  # whoever is first has made it
        except FileExistsError:
            pass
        finally:
            draft.unlink(missing_ok=True)
        return self.key()

    def _remove_old_drafts(self) -> None:
        """Of processes that were killed while they made a key. One that is being made now is younger."""
        for draft in self._key_file.parent.glob(f"{glob.escape(self._key_file.name)}.*{DRAFT_END}"):
            try:
                if time.time() - draft.stat().st_mtime > DRAFT_OLD_S:
                    draft.unlink()
            except OSError:
                continue  # another process has removed it

    def find(self, name: str) -> FoundSecret | None:
        for source in self._sources:
            if source.startswith(ENVIRONMENT):
                variable = source.removeprefix(ENVIRONMENT) + variable_of(name)
                if value := os.environ.get(variable, ""):
                    return FoundSecret(value, f"variable {variable}")
                continue
            try:
                return FoundSecret((Path(source) / name).read_text().rstrip("\n"), source)
            except (OSError, UnicodeDecodeError):
                continue
        return None

    def names(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for source in self._sources:
            if source.startswith(ENVIRONMENT):
                prefix = source.removeprefix(ENVIRONMENT)
                for variable in sorted(os.environ):
                    if prefix and variable.startswith(prefix):
                        found.setdefault(
                            variable.removeprefix(prefix).lower().replace("_", "-"), f"variable {variable}"
                        )
            else:
                for path in sorted(Path(source).iterdir()):
                    if path.is_file() and not path.name.startswith("."):
                        found.setdefault(path.name, source)
        return found
