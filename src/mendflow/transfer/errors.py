"""What can come in the way of a transfer. Whoever moves files decides by these what to do next."""


class TransferFailed(Exception):
    """It did not work. `passing`: it may well work a moment later, as it is. The sentence has no secret in it."""

    def __init__(self, reason: str, *, passing: bool = False) -> None:
        super().__init__(reason)
        self.passing = passing


class FileMissing(TransferFailed):
    """There is no such file, which may be just what somebody wanted to know."""


class DamagedFile(TransferFailed):
    """What came is not what the file is known to be."""


class TargetOccupied(TransferFailed):
    """Another file lies there, which is not ours to replace."""


class BadFileUrl(Exception):
    """This names no place that files can be read from or written to; the sentence says what does."""


class WriterSuperseded(Exception):
    """All was ready, but whoever asked for it may not give the file its name any more."""


class CannotResume(Exception):
    """It cannot be gone on with where the last try ended: whatever was brought is brought again."""
