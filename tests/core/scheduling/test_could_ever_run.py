"""Whether some pilot could ever take a job, asked of very many pilots."""

from collections.abc import Iterator

from mendflow.core.model.ids import PilotId
from mendflow.core.model.jobs import Resources
from mendflow.core.model.sync import Capacity
from mendflow.core.scheduling.offer import IdleResources, Offer

SMALL, LARGE = (Capacity(slots=1, cpus=cpus, memory_bytes=1, disk_bytes=1) for cpus in (1.0, 8.0))


def offer(number: int, whole: Capacity, site: str = "north") -> Offer:
    return Offer(
        cpus=0.0, memory_bytes=0, disk_bytes=0, site=site, host=f"h{number}", pilot=PilotId(f"p{number}"), whole=whole
    )


def test_pilots_are_looked_at_only_until_one_fits() -> None:
    looked: list[int] = []

    def offers() -> Iterator[Offer]:
        for number in range(1_000):
            looked.append(number)
            yield offer(number, LARGE if number == 20 else SMALL)

    rooms = IdleResources(offers())
    assert rooms.any_fits(Resources(cpus=1.0)) and len(looked) == 1
    assert rooms.any_fits(Resources(cpus=4.0)) and len(looked) == 21
    assert rooms.any_fits(Resources(cpus=8.0, site="north")) and len(looked) == 21
    assert not rooms.any_fits(Resources(cpus=9.0)) and len(looked) == 1_000


def test_a_pilot_of_another_site_is_no_room_for_a_job_that_is_bound_to_one() -> None:
    rooms = IdleResources([offer(1, LARGE, "north"), offer(2, SMALL, "south")])
    assert not rooms.any_fits(Resources(cpus=4.0, site="south"))
    assert rooms.any_fits(Resources(cpus=1.0, site="south")) and rooms.any_fits(Resources(cpus=4.0))
