"""An input that only its places tell apart: a re-run takes the earlier result only if they are the same."""

from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import JobSpec, from_source
from mendflow.core.model.values import FileRef
from mendflow.core.results.result_key import differences, result_key

KEPT = FileRef(sha256="a" * 64, bytes=1, name="a")


def spec(*places: str, kept: bool = False) -> JobSpec:
    return JobSpec(item=ItemId("i"), command="x", inputs={"a": KEPT} if kept else {}, replicas={"a": places})


def test_an_input_from_other_places_is_another_input_and_their_order_does_not_matter() -> None:  # FM-8
    before = spec("http://one/a", "http://two/a")
    turned = from_source(before, "a", "http://two/a")
    assert (differences(before, turned), result_key(before)) == ([], result_key(turned))
    for other in (spec("http://three/a"), JobSpec(item=ItemId("i"), command="x")):
        assert any("other places" in each for each in differences(before, other))
        assert result_key(before) != result_key(other)


def test_where_the_content_is_known_the_places_do_not_matter() -> None:  # FM-8
    one, other = spec("http://one/a", kept=True), spec("http://three/a", kept=True)
    assert (differences(one, other), result_key(one)) == ([], result_key(other))
