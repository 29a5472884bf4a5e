"""What the interpreter asks of a kind of activity, on each occasion in the life of one of its instances."""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from mendflow.core.engine.messages import Deliver
from mendflow.core.engine.state import AnyInstance, Instance, InstanceEnd, InstancePhase, Structure
from mendflow.core.model.faults import Fault
from mendflow.core.model.jobs import Outcome

if TYPE_CHECKING:
    from mendflow.core.engine.run import Run

Live = TypeVar("Live", bound=Instance)


def unsupported(*given: object) -> AssertionError:
    """Our bug: a kind of activity does not support what was asked of it."""
    return AssertionError(f"this activity does not support that: {given!r:.300}")


class ActivityKind(Generic[Live]):
    """What a kind of activity does on each occasion. A kind implements only those that apply to it."""

    makes: ClassVar[Callable[..., AnyInstance]] = Instance

    def start(self, run: "Run", instance: Live, /) -> None:
        """Start. Links and conditions are settled."""
        raise unsupported(run, instance)

    def step(self, run: "Run", instance: Live, /) -> None:
        """Continue what an earlier step left."""
        raise unsupported(run, instance)

    def child_ended(self, run: "Run", instance: Live, child: Instance, place: int, /) -> None:
        raise unsupported(run, instance, child, place)

    def child_removed(self, run: "Run", instance: Live, child: Instance, place: int, /) -> None:
        """A child's path was removed. Parallel paths continue; without any, this one's path is removed too."""
        self.child_ended(run, instance, child, place)

    def child_faulted(self, _run: "Run", _instance: Live, _child: Instance, _fault: Fault, /) -> bool:
        """Whether the fault is handled here; otherwise it propagates."""
        return False

    def child_forgotten(self, run: "Run", instance: Live, child: Instance, /) -> None:
        """A child ended while this was being stopped."""

    def stop(self, run: "Run", instance: Live, stack: list[Instance], /) -> None:
        """End early: push whatever must end first on the stack."""
        assert isinstance(instance, Structure)
        instance.phase = InstancePhase.STOPPING
        if instance.children:
            stack.extend(run.instances[child] for child in reversed(instance.children))
        else:
            self.children_stopped(run, instance)

    def children_stopped(self, run: "Run", instance: Live, /) -> None:
        """All children have ended after a stop."""
        run.end(instance, InstanceEnd.STOPPED)

    def close(self, run: "Run", instance: Live, /) -> None:
        """Release everything: called once, as the instance ends, whether or not it had started."""

    def order_finished(self, run: "Run", instance: Live, outcome: Outcome, /) -> None:
        """The outstanding order was answered."""
        raise unsupported(run, instance, outcome)

    def timer_fired(self, run: "Run", instance: Live, serial: int, /) -> None:
        """A timer fired."""
        raise unsupported(run, instance, serial)

    def message_heard(self, run: "Run", instance: Live, place: int, message: Deliver, /) -> None:
        """A message arrived that it listens for."""
        raise unsupported(run, instance, place, message)

    def listening_failed(self, run: "Run", instance: Live, fault: Fault, /) -> None:
        """It listened, and could not take a message."""
        run.fail(instance, fault)
