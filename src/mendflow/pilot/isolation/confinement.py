"""One attempt whose processes are not to be the pilot's: what is made for it, how it starts, and what is taken back.

The pilot's own files stay its own. The job gets a folder that belongs to its account, a few files beside it that it may
write to, and a folder for temporary files. Nothing of the cache is shared with it: what it reads was copied for it."""

import os
import shutil
from collections.abc import Sequence
from typing import Final

from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.pilot.isolation.accounts import Account, NoAccount, account_of_job, give_tree, reclaim_tree
from mendflow.pilot.isolation.bubblewrap import sandbox_words
from mendflow.pilot.isolation.options import Isolation

TEMPORARY_END: Final = ".tmp"
WORKER_END: Final = ".worker"
VALUES_END: Final = ".values"
CONFINED_ENDS: Final = (TEMPORARY_END, WORKER_END, VALUES_END)
_FOLDER_MODE: Final = 0o700
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NotConfined(Exception):
    """The attempt cannot be started in the way that the pilot is to start jobs."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.fault = Fault(
            name="notIsolated",
            category=Category.RESOURCE,
            message=f"it was not started: {why}",
            stage=AttemptStage.START,
        )


class JobConfinement:
    """`folder` is the attempt's, `work` the pilot's, `owner` whose job it is."""

    def __init__(self, isolation: Isolation, *, folder: str, work: str, owner: str) -> None:
        self._isolation = isolation
        self._folder = folder
        self._work = work
        self._temporary = folder + TEMPORARY_END
        self._writable: list[str] = []
        self._readable: list[str] = []
        try:
            self._account: Account | None = account_of_job(isolation.jobs_as, isolation.accounts, owner)
        except NoAccount as error:
            raise NotConfined(str(error)) from None

    @property
    def account(self) -> Account | None:
        return self._account

    def prepare(self, *, files: Sequence[str] = (), folders: Sequence[str] = (), readable: Sequence[str] = ()) -> None:
        """Make what the job may write to, `files` and `folders` beside its own, and let it have them."""
        os.makedirs(self._folder, _FOLDER_MODE, exist_ok=True)
        for path in files:
            self._make_file(path)
        for path in (self._temporary, *folders):
            os.makedirs(path, _FOLDER_MODE, exist_ok=True)
        if self._account is not None:
            for path in (self._folder, self._temporary, *folders):
                give_tree(path, self._account)
        self._writable += [*files, *folders]
        self._readable += [path for path in readable if os.path.exists(path)]

    def _make_file(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        os.close(os.open(path, _NEW_FILE, 0o600))
        if self._account is not None:
            os.chown(path, self._account.uid, self._account.gid)

    def words(self, program: str, arguments: Sequence[str]) -> list[str]:
        """What starts the program as the job."""
        before = self._account.words() if self._account is not None else []
        if self._isolation.sandbox == "bubblewrap":
            before += sandbox_words(
                self._isolation,
                folder=self._folder,
                temporary=self._temporary,
                writable=self._writable,
                readable=self._readable,
                work=self._work,
            )
        words = [*before, program, *arguments]
        return [shutil.which(words[0]) or words[0], *words[1:]]

    def variables(self, environment: dict[str, str]) -> dict[str, str]:
        """What the job finds in its environment of what belongs to an account or a session."""
        if self._account is not None:
            environment = self._account.variables(environment)
        if self._isolation.sandbox == "bubblewrap":
            hidden = {"XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TMP", "TEMP"}
            environment = {name: value for name, value in environment.items() if name not in hidden}
            return environment | {"HOME": self._folder, "TMPDIR": "/tmp"}
        return environment | {"TMPDIR": self._temporary}

    def reclaim(self) -> None:
        """The job's processes are dead: from now on only the pilot can change what they have left."""
        if self._account is not None:
            for path in (self._folder, *self._writable):
                reclaim_tree(path, self._account)
