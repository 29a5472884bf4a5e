"""Fair share and quotas in a simulated grid: what projects and users get, how long they wait, what is never passed."""

from collections.abc import Callable, Iterable

import msgspec
import pytest

from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import FlowName
from mendflow.core.model.projects import ProjectSettings, Quotas
from mendflow.sim.grid.job_model import SteadyJobs
from mendflow.sim.grid.results import GridResult, JobRecord
from mendflow.sim.grid.scene import GridScene, SiteScene
from mendflow.sim.grid.world import CaseScene, play_all
from tests.sim.grid.chains import many

HALF_LIFE_S = 1800.0
JOB_MODEL = SteadyJobs(60, 15)


def flow(name: str, jobs: int) -> Flow:
    return msgspec.structs.replace(many(jobs), name=FlowName(name))


def grid(projects: dict[str, ProjectSettings], *, pilots: int = 20, seed: int = 1) -> GridScene:
    site = SiteScene(hosts=pilots, running=pilots)
    return GridScene(seed=seed, sites=(site,), projects=projects, half_life_s=HALF_LIFE_S)


def cpu_s(records: Iterable[JobRecord], begin: float, end: float, which: Callable[[JobRecord], bool]) -> float:
    """What the jobs have used between these times."""
    return sum(max(0.0, min(each.ended_s, end) - max(each.granted_s, begin)) for each in records if which(each))


def share(result: GridResult, begin: float, end: float, which: Callable[[JobRecord], bool]) -> float:
    total = cpu_s(result.records, begin, end, lambda _: True)
    return cpu_s(result.records, begin, end, which) / total


def most_at_once(records: Iterable[JobRecord]) -> int:
    steps = sorted(step for each in records for step in ((each.granted_s, 1), (each.ended_s, -1)))
    running, most = 0, 0
    for _, change in steps:
        running += change
        most = max(most, running)
    return most


@pytest.mark.parametrize("seed", [1, 2])
def test_two_projects_of_three_to_one_get_their_shares_and_wait_by_them(seed: int) -> None:  # SE-6
    """Both want all pilots for three half-lives. After the first, each has had its share, and has it from then on; and
    where both are equally far with what they want, their jobs have waited for equally long."""
    jobs = 3 * int(HALF_LIFE_S / 60 * 20 / 4)
    scene = grid({"red": ProjectSettings(weight=3)}, seed=seed)
    cases = [
        CaseScene(flow=flow("big", 3 * jobs), project="red"),
        CaseScene(flow=flow("small", jobs), project="blue"),
    ]
    result = play_all(scene, cases, JOB_MODEL)
    assert result.status == "completed"

    def of_red(each: JobRecord) -> bool:
        return each.project == "red"

    assert share(result, 0, HALF_LIFE_S, of_red) == pytest.approx(0.75, rel=0.05)
    assert share(result, HALF_LIFE_S, 2 * HALF_LIFE_S, of_red) == pytest.approx(0.75, rel=0.05)
    red = sorted(each.granted_s for each in result.records if of_red(each))
    blue = sorted(each.granted_s for each in result.records if not of_red(each))
    later = [(red[3 * place], at) for place, at in enumerate(blue) if at > HALF_LIFE_S]
    assert len(later) > jobs / 2
    for of_big, of_small in later:
        assert of_big == pytest.approx(of_small, rel=0.05)


def test_who_has_used_nothing_for_a_while_catches_up_but_only_so_far() -> None:  # SE-6
    """Blue comes an hour, two half-lives, later: it goes first until it has had as much as what is left of red's."""
    cases = [
        CaseScene(flow=flow("early", 2900), project="red"),
        CaseScene(flow=flow("late", 1500), project="blue", at_s=2 * HALF_LIFE_S),
    ]
    result = play_all(grid({}), cases, JOB_MODEL)

    def of_blue(each: JobRecord) -> bool:
        return each.project == "blue"

    begin = 2 * HALF_LIFE_S
    assert share(result, begin + 120, begin + 600, of_blue) > 0.95
    assert share(result, begin + 2 * HALF_LIFE_S, begin + 2.5 * HALF_LIFE_S, of_blue) == pytest.approx(0.5, rel=0.1)


def test_users_of_a_project_share_by_their_weights() -> None:  # SE-6
    scene = grid({"red": ProjectSettings(share_users=True, user_weights={"ann": 3})})
    cases = [
        CaseScene(flow=flow("one", 900), project="red", user="ann"),
        CaseScene(flow=flow("two", 300), project="red", user="bob"),
    ]
    result = play_all(scene, cases, JOB_MODEL)
    of_ann = share(result, 0, HALF_LIFE_S, lambda each: each.user == "ann")
    assert of_ann == pytest.approx(0.75, rel=0.05)


def test_without_shares_of_users_the_first_to_come_is_the_first_to_run() -> None:  # SE-6
    cases = [
        CaseScene(flow=flow("one", 300), project="red", user="ann"),
        CaseScene(flow=flow("two", 300), project="red", user="bob", at_s=1),
    ]
    result = play_all(grid({}), cases, JOB_MODEL)
    assert share(result, 60, 600, lambda each: each.user == "ann") > 0.95


def test_a_quota_holds_and_leaves_the_rest_to_others() -> None:  # SE-6
    scene = grid({"red": ProjectSettings(weight=100, quotas=Quotas(running_jobs=5))})
    cases = [
        CaseScene(flow=flow("bounded", 100), project="red"),
        CaseScene(flow=flow("free", 200), project="blue"),
    ]
    result = play_all(scene, cases, JOB_MODEL)
    assert result.status == "completed"
    assert most_at_once(each for each in result.records if each.project == "red") == 5
    assert most_at_once(result.records) == 20


@pytest.mark.parametrize("quotas", [Quotas(cpus=3), Quotas(waiting_jobs=2), Quotas(running_jobs=2, cpus=8, cases=1)])
def test_a_bounded_project_ends_all_the_same(quotas: Quotas) -> None:  # SE-6
    result = play_all(
        grid({"red": ProjectSettings(quotas=quotas)}), [CaseScene(flow=flow("f", 30), project="red")], JOB_MODEL
    )
    assert result.status == "completed" and len(result.records) == 30
    bound = quotas.running_jobs or quotas.cpus
    assert bound is None or most_at_once(result.records) == bound


def test_the_same_seed_gives_the_same_bytes_with_several_projects() -> None:  # SE-6
    scene = grid({"red": ProjectSettings(weight=2, quotas=Quotas(cpus=7))})
    cases = [CaseScene(flow=flow(each, 60), project=each) for each in ("red", "blue")]
    first, again = (msgspec.json.encode(play_all(scene, cases, JOB_MODEL)) for _ in range(2))
    assert first == again
