"""Reports of pilots that could not be processed because of an internal error.

After such an error all services are thrown away and built again from the store, and the pilot repeats its report. That
may have mended it. If not, it must not go on for ever: so the server remembers the errors, and a report that has raised
several counts as a failure of that one job."""

from typing import Final

from mendflow.core.model.ids import JobId

ERRORS_MAX: Final = 2
REMEMBERED_MAX: Final = 1_000


class UnprocessedReports:
    """By job and fence, the errors that the report has raised. It outlives the services."""

    def __init__(self) -> None:
        self._errors: dict[tuple[JobId, int], list[str]] = {}

    def note(self, job: JobId, fence: int, error: Exception) -> None:
        self._errors.setdefault((job, fence), []).append(f"{error!r:.300}")
        if len(self._errors) > REMEMBERED_MAX:
            del self._errors[next(iter(self._errors))]

    def error_of(self, job: JobId, fence: int) -> str:
        """The last error of a report that is not to be processed again, or nothing."""
        errors = self._errors.get((job, fence), ()) if self._errors else ()
        return errors[-1] if len(errors) >= ERRORS_MAX else ""
