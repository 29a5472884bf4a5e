"""Errors of transfers, by what the caller can do about them."""


class TransferFailed(Exception):
    """It failed. `passing`: an identical retry may succeed. The message contains no secret."""

    def __init__(self, reason: str, *, passing: bool = False) -> None:
        super().__init__(reason)
        self.passing = passing


class FileMissing(TransferFailed):
    """There is no such file."""


class DamagedFile(TransferFailed):
    """The content does not match the file's digest."""


class TargetOccupied(TransferFailed):
    """Another file is there, which may not be replaced."""


class BadFileUrl(Exception):
    """This is not a place that files can be read from or written to; the message says what is."""


class WriterSuperseded(Exception):
    """The file is ready, but its writer may no longer give it its name."""


class CannotResume(Exception):
    """The transfer cannot continue where it stopped: start over."""
