"""The shipped examples of recovery, run as they are by a real server and a real pilot."""

from pathlib import Path

import pytest

from mendflow.formats import load
from mendflow.formats.rules import load_rules
from tests.recovery.conftest import EXAMPLES, Site

CONCERT = EXAMPLES / "concert"
TRIGGERS = {"BandBrokenUp", "TicketSalesBetterThanExpected", "BandRequestsBackstageRefreshments"}


@pytest.fixture(scope="module")
def concerts(site: Site) -> Site:
    site.client.deploy(load(CONCERT / "OrganiseConcert.yaml"))
    site.client.put_rules(load_rules(CONCERT / "rules.yaml"))
    return site


def begun(site: Site) -> str:
    """A concert whose tickets are being sold."""
    case = site.client.start("OrganiseConcert").id
    site.task(case, "box-office")
    return case


def sold(site: Site, case: str, tickets: int) -> None:
    site.client.complete(site.task(case, "box-office").id, {"TicketsSold": tickets})


@pytest.mark.parametrize(
    ("tickets", "exlets", "venue", "seats"),
    [
        (30_000, [], "stadium", 30_000),
        (22_500, [], "stadium", 30_000),
        (22_499, ["change-to-mid-venue"], "arena", 20_000),
        (15_000, ["change-to-mid-venue"], "arena", 20_000),
        (14_999, ["change-to-small-venue"], "club", 15_000),
        (6_000, ["change-to-small-venue"], "club", 15_000),
    ],
)
def test_the_show_moves_to_a_venue_of_the_right_size(
    concerts: Site, tickets: int, exlets: list[str], venue: str, seats: int
) -> None:
    # EX-2 EX-4 EX-5: suspend the item, run the worklet, write back what it found, continue the item
    case = begun(concerts)
    sold(concerts, case, tickets)
    assert concerts.ended(case) == "completed"
    assert concerts.did(case) == exlets
    assert concerts.client.case(case).outputs == {"venue": venue, "seats": seats, "sold": tickets}
    assert f"{tickets} people came to the {venue} with its {seats} seats" in log_of(concerts, case, "DoShow")


def log_of(site: Site, case: str, item: str) -> str:
    return site.client.log(f"{case}/{site.client.item(case, item).serial}").text


def test_a_show_that_nobody_wants_to_see_is_called_off(concerts: Site) -> None:
    # EX-2: suspend the case, run the worklet, remove the case
    case = begun(concerts)
    sold(concerts, case, 5_999)
    assert concerts.ended(case) == "cancelled"
    assert concerts.did(case) == ["cancel-show"]
    (worklet,) = [each for each in concerts.client.cases(flow="CancelShow") if each.id.startswith(case)]
    assert worklet.outputs == {"refunded": 5_999}
    assert "DoShow" not in {item.item for item in concerts.client.items(case, state="completed")}


def test_what_may_happen_to_a_concert_is_listed(concerts: Site) -> None:
    # EX-9
    case = begun(concerts)
    assert {view.trigger for view in concerts.client.triggers(case)} == TRIGGERS
    sold(concerts, case, 30_000)
    assert concerts.ended(case) == "completed"


def test_a_band_that_breaks_up_ends_the_concert(concerts: Site) -> None:
    # EX-9
    case = begun(concerts)
    concerts.client.raise_trigger(case, "BandBrokenUp")
    assert concerts.ended(case) == "cancelled"
    assert concerts.did(case) == ["cancel-show"]


def test_good_news_and_small_wishes_are_seen_to_while_the_concert_goes_on(concerts: Site) -> None:
    # EX-2: nothing is suspended, so the worklets run beside the case
    case = begun(concerts)
    concerts.client.raise_trigger(case, "TicketSalesBetterThanExpected")
    concerts.client.raise_trigger(case, "BandRequestsBackstageRefreshments", data={"wish": "oat milk"})
    concerts.until(lambda: len(worklets(concerts, case)) == 2, "both worklets to end")
    assert concerts.client.case(case).status == "running"
    sold(concerts, case, 30_000)
    assert concerts.ended(case) == "completed"
    (shopping,) = [id for id in worklets(concerts, case) if concerts.client.case(id).flow == "BuyRefreshments"]
    assert "bought oat milk" in log_of(concerts, shopping, "GoShopping")


def worklets(site: Site, case: str) -> list[str]:
    flows = ("ArrangeSecondShow", "BuyRefreshments")
    found = [each for flow in flows for each in site.client.cases(flow=flow, status="completed")]
    return [each.id for each in found if each.id.startswith(case)]


@pytest.fixture
def book(site: Site, tmp_path: Path) -> Path:
    site.client.deploy(load(EXAMPLES / "advertising" / "advertising.yaml"))
    folder = tmp_path / "book"
    folder.mkdir()
    return folder


def decided(site: Site, book: Path, *answers: tuple[str, bool]) -> str:
    """A request for a slot on which these people have decided so."""
    case = site.client.start("advertising", {"book": str(book), "slot": "A1"}).id
    for role, approved in answers:
        site.client.complete(site.task(case, role).id, {"approved": approved})
    return case


def entries(book: Path) -> list[str]:
    path = book / "decisions"
    return path.read_text().splitlines() if path.exists() else []


ADMINISTRATOR_YES, SLOT_YES = ("system-administrator", True), ("slot-keeper", True)
APPROVED = ["administrator approves A1", "slot approves A1"]


def test_a_slot_that_both_approve_is_published(site: Site, book: Path) -> None:
    # AD-6
    case = decided(site, book, ADMINISTRATOR_YES, SLOT_YES)
    assert site.ended(case) == "completed"
    assert entries(book) == [*APPROVED, "published on A1"]
    assert site.did(case) == []


@pytest.mark.parametrize(
    ("answers", "last"),
    [
        ([("system-administrator", False)], "administrator rejects A1"),
        ([ADMINISTRATOR_YES, ("slot-keeper", False)], "slot rejects A1"),
    ],
)
def test_either_may_reject(site: Site, book: Path, answers: list[tuple[str, bool]], last: str) -> None:
    # AD-6
    case = decided(site, book, *answers)
    assert site.ended(case) == "completed"
    assert entries(book)[-1] == last


def test_what_may_pass_is_tried_again_level_by_level_and_then_goes_on(site: Site, book: Path) -> None:
    # AD-2 AD-3 AD-4
    (book / "closed").touch()
    case = decided(site, book, ADMINISTRATOR_YES, SLOT_YES)
    site.until(lambda: len(site.did(case)) == 2, "a second wait")
    (book / "closed").unlink()
    assert site.ended(case) == "completed"
    assert entries(book) == [*APPROVED, "published on A1"]
    assert set(site.did(case)) == {"later"}


def test_what_does_not_pass_is_compensated_after_the_last_level(site: Site, book: Path) -> None:
    # AD-4 AD-5
    (book / "closed").touch()
    case = decided(site, book, ADMINISTRATOR_YES, SLOT_YES)
    assert site.ended(case) == "failed"
    assert site.did(case) == ["later", "later", "later", "give-up"]
    assert entries(book) == [*APPROVED, *TAKEN_BACK]


TAKEN_BACK = ["slot's approval of A1 is taken back", "administrator's approval of A1 is taken back"]


def test_what_cannot_be_recovered_is_compensated_at_once_the_last_first(site: Site, book: Path) -> None:
    # AD-1 AD-3 AD-5
    (book / "burnt").touch()
    case = decided(site, book, ADMINISTRATOR_YES, SLOT_YES)
    assert site.ended(case) == "failed"
    assert site.did(case) == ["give-up"]
    assert entries(book) == [*APPROVED, *TAKEN_BACK]
    told = [alert.sentence for alert in site.client.alerts(severity="info")]
    assert any(f"{case}: Publish was given up: " in message for message in told)


@pytest.mark.full
def test_a_night_in_which_nearly_everything_goes_wrong_ends_well(site: Site, tmp_path: Path) -> None:
    # FM-8 FM-12 AD-3: memory, time, a lost slot, a lost replica, a closed archive
    (tmp_path / "plate.txt").write_text("star\n" * 42)
    site.client.deploy(load(EXAMPLES / "night" / "night.yaml"))
    case = site.client.start("failing-night", {"folder": str(tmp_path)}).id
    assert site.ended(case) == "completed"
    assert site.client.case(case).outputs == {"stars": 42, "orbit": "ellipse", "published": True}
    assert sorted(site.did(case)) == ["another-replica", "later", "more-memory", "more-time"]
    assert [len(item.attempts) for item in site.client.items(case)] == [2, 2, 2, 2, 2]
