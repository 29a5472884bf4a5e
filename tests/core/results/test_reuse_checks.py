"""Which results are used again without being asked for: those of jobs that declare what they make and are made from."""

import pytest
from msgspec.structs import replace

from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import FunctionRef, JobSpec, Outcome, Submission
from mendflow.core.model.secrets import SecretUse
from mendflow.core.model.values import FileRef, spilled_value
from mendflow.core.results.reuse_checks import gives_nothing, stored_files, why_never, why_undeclared

KEPT = FileRef(sha256="a" * 64, bytes=1, name="a")
SPEC = JobSpec(item=ItemId("i"), command="sort a > b", inputs={"a": KEPT}, files={"b": "b"})
CODE = FunctionRef(module="m", name="f", code=KEPT)
CALL = JobSpec(item=ItemId("i"), function=CODE, args=[1])


SECRET = replace(SPEC, command="sort a > b; check b $TOKEN", secrets=(SecretUse(name="lims", variable="TOKEN"),))


@pytest.mark.parametrize("spec", [SPEC, CALL, replace(CALL, args=[], inputs={"a": KEPT}), SECRET], ids=str)
def test_a_job_that_declares_enough_is_used_again(spec: JobSpec) -> None:  # DU-2
    assert why_undeclared(spec) == ""
    assert why_never(spec) == ""


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (replace(SPEC, files={}), "no `files`"),
        (replace(SPEC, submission=Submission.FORGET), "nobody waits"),
        (replace(SPEC, inputs={}), "no inputs"),
        (replace(SPEC, replicas={"c": ("http://one/c",)}), "input c is fetched"),
        (replace(SPEC, inputs={"a": replace(KEPT, sha256="")}), "not known"),
        (replace(SPEC, command="sort a /data/b > b"), "names /data/b,"),
        (replace(SPEC, command="curl -X POST -d @a https://there/x > b"), "names https://there/x,"),
        (replace(SPEC, env={"TABLE": "/data/table"}), "names /data/table,"),
        (replace(SPEC, shell="/opt/tools/bin/fish {0}"), "names /opt/tools/bin/fish,"),
        (replace(SPEC, command="sort a $MORE > b"), "uses $MORE, which it does not set itself"),
        (replace(SPEC, command="sort a > b; echo $MENDFLOW_ITEM >> b"), "uses $MENDFLOW_ITEM, which is another in"),
        (replace(CALL, args=[{"in": ["~/table"]}]), "names ~/table,"),
        (replace(CALL, args=[]), "no inputs"),
        (replace(CALL, function=FunctionRef(module="numpy", name="f")), "installed with the pilot"),
    ],
    ids=str,
)
def test_a_job_that_may_depend_on_something_else_is_not_used_unless_it_says_so(spec: JobSpec, told: str) -> None:
    # DU-2
    assert told in why_undeclared(spec)
    assert why_undeclared(replace(spec, cache=True)) == ""


def test_what_forbids_it_is_never_used_again() -> None:  # DU-2
    assert why_never(replace(SPEC, cache=False))


def test_a_result_consists_of_its_files_and_of_those_in_its_outputs() -> None:  # DU-2
    inner = FileRef(sha256="b" * 64, bytes=2, name="b")
    spilled = FileRef(sha256="c" * 64, bytes=3, name="c")
    outcome = Outcome(outputs={"x": [1, inner.as_value()], "y": spilled_value(spilled)}, files={"f": KEPT})
    assert {ref.sha256[0] for _, ref in stored_files(outcome)} == {"a", "b", "c"}
    assert gives_nothing(Outcome())
    assert not gives_nothing(outcome)
    assert not gives_nothing(Outcome(outputs=0))
