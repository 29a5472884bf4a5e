"""`compensation:` says how a step is undone; `select:` leaves a worklet to the rules."""

from mendflow.core.engine import compensations, compile_flow
from mendflow.core.engine.messages import StartCalledCase
from mendflow.core.model.ids import ItemId
from tests.core.engine.world import Play
from tests.formats.conftest import Complaints, Reader

FAIR = """\
inputs: {fair: spring}
jobs:
  book:
    run: book a stall
    compensation: free ${{ jobs.book.outputs.stall }} of ${{ inputs.fair }}
  pay:
    run: pay ${{ jobs.book.outputs.stall }}
    compensation: {call: refund, with: {paid: "${{ jobs.pay.outputs }}"}}
  open:
    needs: pay
    run: open
"""


def test_completed_jobs_are_undone_in_reverse_when_the_flow_fails(read: Reader) -> None:  # AD-1, AD-5
    play = Play(read(FAIR)).done("book", outputs={"stall": 12}).done("pay", outputs=7)
    assert [each.name for each in compensations(play.case)] == ["book", "pay"]
    play.fail("open")
    (call,) = play.out.values()
    assert isinstance(call, StartCalledCase) and (call.name, call.inputs) == ("refund", {"paid": 7})
    play.done("pay.compensation")
    assert play.command("book.compensation") == "free 12 of spring"
    play.done("book.compensation")
    assert play.status == "failed"


def test_what_undoes_a_job_can_be_run_as_a_case_of_its_own(read: Reader) -> None:  # AD-1
    play = Play(read(FAIR)).done("book", outputs={"stall": 12})
    (done,) = compensations(play.case)
    assert done.flow is not None
    compile_flow(done.flow)
    assert Play(done.flow, done.inputs).command("book.compensation") == "free 12 of spring"


def test_a_skipped_job_has_nothing_to_undo(read: Reader) -> None:
    play = Play(read("steps: [{run: x, name: a, if: 1 > 2, compensation: y}, z]"))
    assert (compensations(play.case), play.skipped, play.jobs) == ([], ["a"], ["step-2"])


def test_each_turn_of_a_loop_is_undone_with_its_own_data(read: Reader) -> None:
    play = Play(
        read("""\
jobs:
  book:
    for-each: [a, b]
    run: book ${{ item }}
    compensation: free ${{ item }} ${{ jobs.book.outputs }}
  last: echo ${{ jobs.book.outputs }}
""")
    )
    play.done("book[1]", outputs=5).done("book[0]", outputs=6)
    assert play.command("last") == "echo [6, 5]"
    assert [each.item for each in compensations(play.case)] == ["book[1]", "book[0]"]
    flows = [each.flow for each in compensations(play.case)]
    assert [Play(flow).command("book.compensation") for flow in flows if flow is not None] == ["free b 5", "free a 6"]
    play.fail("last")
    assert play.command("book.compensation[0]") == "free a 6"


def test_a_compensation_that_names_what_there_is_not_is_refused(complaints: Complaints) -> None:
    assert complaints("jobs:\n  a:\n    run: x\n    compensation: y ${{ jobs.b.outputs }}\n") == [
        "4:25: there is no job `b` in this flow"
    ]


def test_text_that_only_looks_like_an_expression_stays_text(read: Reader) -> None:
    text = "steps: [{for-each: [1], run: x, name: a, compensation: 'echo $${{ jobs.a }} ${{ jobs.a.outputs }}'}, y]"
    play = Play(read(text)).done("a[0]", outputs=1)
    (done,) = compensations(play.case)
    assert done.flow is not None and Play(done.flow).command("a.compensation") == "echo ${{ jobs.a }} 1"


def test_select_leaves_the_worklet_to_the_rules(read: Reader) -> None:  # EX-8
    play = Play(read("jobs:\n  treat: {select: true, with: {age: 5}}\n"))
    assert list(play.out.values()) == [StartCalledCase(serial=1, item=ItemId("treat"), name="", inputs={"age": 5})]
