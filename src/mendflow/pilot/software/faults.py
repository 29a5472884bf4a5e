"""Faults of the software of a job: why an environment could not be made, or a module not be loaded."""

from mendflow.core.model.faults import AttemptStage, Category, Fault

MESSAGE_CHARS_MAX = 2_000


def bad_environment(shown: str, reason: str) -> Fault:
    """The description is wrong: whoever tries again gets the same."""
    return Fault(
        name="badEnvironment",
        category=Category.INPUT,
        message=f"the environment ({shown}) cannot be made: {reason}"[:MESSAGE_CHARS_MAX],
        stage=AttemptStage.STAGE_IN,
        data={"reason": reason[:MESSAGE_CHARS_MAX], "lasting": True},
    )


def environment_not_made(shown: str, reason: str) -> Fault:
    """It could not be made now: no network, no room, a program that is missing on this host."""
    return Fault(
        name="environmentNotMade",
        category=Category.RESOURCE,
        message=f"the environment ({shown}) could not be made here: {reason}"[:MESSAGE_CHARS_MAX],
        stage=AttemptStage.STAGE_IN,
        data={"reason": reason[:MESSAGE_CHARS_MAX]},
    )


def modules_not_loaded(modules: tuple[str, ...], reason: str) -> Fault:
    return Fault(
        name="modulesNotLoaded",
        category=Category.RESOURCE,
        message=f"`module load {' '.join(modules)}` failed on this host: {reason}"[:MESSAGE_CHARS_MAX],
        stage=AttemptStage.STAGE_IN,
        data={"modules": list(modules), "reason": reason[:MESSAGE_CHARS_MAX]},
    )
