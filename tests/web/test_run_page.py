"""Starting a flow by its form, writing one, its next version, and its end."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, ViewportSize, expect

from mendflow.core.model.ids import CaseId
from tests.patience import PATIENCE_S
from tests.web.dialogs import confirm
from tests.web.watched import DESK, PHONE, Complaints, watched
from tests.web.web_server import WebServer

TYPED = """
name: typed
description: Takes all kinds of inputs
inputs:
  copies: {type: number, description: How many}
  names: {type: list, default: [ada], description: Who gets one}
  urgent: {type: boolean, default: false}
jobs:
  say: {run: "echo ${{ inputs.copies }}"}
"""
COUNTED = """
name: counted
inputs: {text: {type: file}}
jobs:
  count:
    inputs: {text.txt: "${{ inputs.text }}"}
    run: echo "it has $(wc -w < text.txt) words"
"""
PAIRED = """
name: paired
inputs: {texts: {type: files}}
jobs:
  count: {run: "echo ${{ size(inputs.texts) }}"}
"""
NIGHTLY = """
name: nightly
inputs:
  room: {type: string, default: 200 MB, description: What reducing takes}
  words: {type: string, default: none}
jobs:
  split: {run: echo split}
  clean: {needs: split, for-each: "${{ range(3) }}", run: "echo ${{ item }} ${{ inputs.words }}"}
  calibrate: {needs: clean, run: echo calibrated}
  reduce: {needs: [clean, calibrate], run: echo reduced, resources: {memory: "${{ inputs.room }}"}}
  review: {needs: reduce, user-task: May it go out?, role: editor, fields: {approved: yes or no}}
  publish: {needs: [split, reduce, review], run: echo published}
"""
SMALLEST_PX = 10
FRESH_MS = 2_100
"""After this the page reads again, where its connection was away for a moment."""
DRAWN = """picture => {
  const scale = picture.getScreenCTM().a;
  const texts = [...picture.querySelectorAll("text")].map(each => parseFloat(getComputedStyle(each).fontSize) * scale);
  const box = name => picture.querySelector(`[data-node="${name}"] rect`).getBoundingClientRect();
  const steps = [...picture.querySelectorAll(".flow-step")].map(each => each.dataset.node);
  const crossed = [...picture.querySelectorAll(".flow-edge")].flatMap(edge => {
    const others = steps.filter(each => each !== edge.dataset.from && each !== edge.dataset.to);
    const length = edge.getTotalLength();
    const passed = Array.from({length: 101}, (_, at) => {
      const {x, y} = edge.getPointAtLength((length * at) / 100).matrixTransform(edge.getScreenCTM());
      return others.filter(each => { const {left, right, top, bottom} = box(each);
        return x > left && x < right && y > top && y < bottom; });
    }).flat();
    return [...new Set(passed)].map(each => `${edge.dataset.from}>${edge.dataset.to} over ${each}`);
  });
  const room = picture.parentElement;
  return {smallest: Math.min(...texts), crossed, steps, isWhole: room.scrollWidth <= room.clientWidth};
}"""
"""How large the text of a drawing is, which edges run over steps, and whether it is as wide as its place at most."""


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_ui_1_what_will_run_is_drawn_so_that_it_can_be_read(
    browser: Browser, server: WebServer, size: ViewportSize
) -> None:
    server.deploy("nightly", NIGHTLY)
    with watched(browser, server.url, size=size) as context:
        page = context.page()
        page.goto("/run/nightly")
        picture = page.get_by_role("img", name=re.compile("^nightly: "))
        expect(picture).to_have_attribute("data-direction", "down")
        drawn = picture.evaluate(DRAWN)
        assert len(drawn["steps"]) == 6
        assert drawn["smallest"] >= SMALLEST_PX
        assert not drawn["crossed"]
        assert drawn["isWhole"]
        expect(page.get_by_label("room")).to_have_accessible_description("What reducing takes. A size, such as 200 MB.")
        expect(page.get_by_label("words")).to_have_accessible_description("")


def test_a_flow_is_picked_and_started_by_its_form(page: Page, server: WebServer) -> None:
    server.deploy("typed", TYPED)
    page.goto("/run")
    page.get_by_label("Find a flow").fill("typed")
    page.get_by_role("link", name="typed", exact=True).click()
    expect(page.get_by_role("img", name="typed: say")).to_be_visible()
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("A value is needed")).to_be_visible()
    page.get_by_label("copies").fill("3")
    page.get_by_role("textbox", name="names").fill("ada\ngrace")
    page.get_by_label("urgent").select_option("Yes")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/cases/typed-*")
    case = server.client.cases(flow="typed")[0]
    assert case.inputs == {"copies": 3, "names": ["ada", "grace"], "urgent": True}
    assert server.client.wait(case.id, timeout_s=PATIENCE_S).status == "completed"


def test_ui_1_what_is_no_number_is_told_beside_its_field_and_nothing_starts(page: Page, server: WebServer) -> None:
    server.deploy("measured", TYPED.replace("name: typed", "name: measured"))
    page.goto("/run/measured")
    copies = page.get_by_label("copies")
    for wrong in ("zwei", "e", "3 or 4"):
        copies.fill(wrong)
        expect(page.get_by_text(f"“{wrong}” is no number")).to_be_visible()
        page.get_by_role("button", name="Start").click()
        expect(copies).to_be_focused()
        expect(copies).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("alert")).to_contain_text("Fill in copies to start.")
    assert server.client.cases(flow="measured") == []
    copies.fill("2.5")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/cases/measured-*")
    assert server.client.cases(flow="measured")[0].inputs["copies"] == 2.5


def test_ui_1_what_the_server_says_of_an_input_stands_at_its_field(
    page: Page, server: WebServer, complaints: Complaints
) -> None:
    complaints.expected.append("400")  # what the browser itself says of the server's refusal
    server.deploy("retyped", TYPED.replace("name: typed", "name: retyped"))
    page.goto("/run/retyped")
    names = page.get_by_role("textbox", name="names")
    expect(names).to_be_visible()
    server.deploy("retyped", TYPED.replace("name: typed", "name: retyped").replace("type: number", "type: boolean"))
    page.get_by_label("copies").fill("3")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text(re.compile("^Must be .*, not 3"))).to_be_visible()
    expect(page.get_by_label("copies")).to_have_attribute("aria-invalid", "true")


def test_a_flow_is_written_checked_where_it_is_wrong_and_deployed(page: Page, server: WebServer) -> None:
    page.goto("/run?write=true")
    editor = page.get_by_role("textbox", name="Flow file")
    expect(page.get_by_text("hello has no problems", exact=True)).to_be_visible()  # nor remarks
    _rewrite(editor, "name: written\njobs:\n  one: {rum: echo one}\n")
    problems = page.get_by_role("list", name="Problems")
    expect(problems).to_contain_text("line 3")
    expect(page.get_by_role("button", name="Deploy")).to_be_disabled()
    _rewrite(editor, "name: written\njobs:\n  one: {run: echo one}\n")
    page.get_by_role("button", name="Deploy written").click()
    page.wait_for_url("**/run/written")
    assert server.client.flow("written").version == 1


SIMULATED = "name: simulated\njobs:\n  run:\n    inputs: [sim.py]\n    run: cat sim.py\n"


def test_files_beside_a_flow_are_added_and_kept_for_its_next_version(
    page: Page, server: WebServer, tmp_path: Path
) -> None:
    (tmp_path / "simulated.yaml").write_text(SIMULATED)
    (tmp_path / "sim.py").write_text("print(42)\n")
    page.goto("/run?write=true")
    page.get_by_label("Open a flow file").set_input_files(tmp_path / "simulated.yaml")
    expect(page.get_by_role("list", name="Problems")).to_contain_text("line 4")
    expect(page.get_by_role("list", name="Problems")).to_contain_text("sim.py is beside the flow's file")
    expect(page.get_by_role("button", name="Deploy")).to_be_disabled()
    page.get_by_label("Add files beside the flow file").set_input_files(tmp_path / "sim.py")
    beside = page.get_by_role("list", name="Files beside the flow file")
    expect(beside).to_contain_text("added here")
    page.get_by_role("button", name="Deploy simulated").click()
    page.wait_for_url("**/run/simulated")
    page.goto("/flows/simulated?view=edit")
    expect(page.get_by_role("textbox", name="Flow file")).to_contain_text("name: simulated")
    expect(page.get_by_role("main").get_by_role("link", name="Flows")).to_be_visible()
    expect(beside).to_contain_text("kept from version 1")
    (tmp_path / "simulated.yaml").write_text(f"description: the next\n{SIMULATED}")
    page.get_by_label("Open a flow file").set_input_files(tmp_path / "simulated.yaml")
    expect(beside).to_contain_text("kept from version 1")
    page.get_by_role("button", name="Deploy simulated").click()
    expect(page.get_by_text("version 2, deployed by")).to_be_visible()
    page.get_by_role("link", name="File", exact=True).click()
    expect(beside).to_contain_text("sim.py")
    case = server.client.start("simulated")
    assert server.client.wait(case.id, timeout_s=PATIENCE_S).status == "completed"


TWICE_NAMED = "name: twice-named\njobs:\n  run:\n    inputs: {a: a/x.txt, b: ./b/x.txt}\n    run: cat a b\n"


def test_files_of_one_name_are_added_beside_their_paths(page: Page, server: WebServer, tmp_path: Path) -> None:
    (tmp_path / "twice-named.yaml").write_text(TWICE_NAMED)
    for folder, text in {"a": "one\n", "b": "another\n"}.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text(text)
    page.goto("/run?write=true")
    page.get_by_label("Open a flow file").set_input_files(tmp_path / "twice-named.yaml")
    beside = page.get_by_role("list", name="Files beside the flow file")
    expect(beside.get_by_role("listitem")).to_contain_text(["a/x.txt", "./b/x.txt"])
    page.get_by_label("Add files beside the flow file").set_input_files(tmp_path / "a" / "x.txt")
    expect(page.get_by_role("alert")).to_contain_text("x.txt may be a/x.txt or b/x.txt")
    page.get_by_label("Add ./b/x.txt").set_input_files(tmp_path / "b" / "x.txt")
    expect(beside.get_by_role("listitem").filter(has_text="./b/x.txt")).to_contain_text("8 B, added here")
    expect(beside.get_by_role("listitem").filter(has_text="a/x.txt").first).to_contain_text("missing")
    page.get_by_label("Add a/x.txt").set_input_files(tmp_path / "a" / "x.txt")
    page.get_by_role("button", name="Deploy twice-named").click()
    page.wait_for_url("**/run/twice-named")
    case = server.client.start("twice-named")
    assert server.client.wait(case.id, timeout_s=PATIENCE_S).status == "completed"
    kept = {each.path: each.file.bytes for each in server.client.flow_file("twice-named").beside if each.file}
    assert kept == {"a/x.txt": 4, "b/x.txt": 8}
    page.goto("/flows/twice-named?view=edit")
    expect(beside.get_by_role("listitem").filter(has_text="kept from version 1")).to_have_count(2)


TIMED = "name: timed\non: {schedule: {cron: 0 5 1 1 *, timezone: UTC}}\njobs: {a: {run: 'true'}}\n"


def test_who_deploys_a_flow_with_triggers_is_told_whether_they_take_effect(
    page: Page, server: WebServer, tmp_path: Path
) -> None:
    (tmp_path / "timed.yaml").write_text(TIMED)
    page.goto("/run?write=true")
    page.get_by_label("Open a flow file").set_input_files(tmp_path / "timed.yaml")
    expect(page.get_by_text("the “on” of this file takes effect with the second button")).to_be_visible()
    page.get_by_role("button", name="Deploy timed").click()
    expect(page.get_by_text("timed is deployed; its “on” changed nothing")).to_be_visible()
    assert server.client.flow("timed").triggers is None
    page.goto("/flows/timed?view=edit")
    page.get_by_role("button", name="have its “on” take effect").click()
    expect(page.get_by_text("timed is deployed, and its “on” is in effect")).to_be_visible()
    assert server.client.flow("timed").triggers is not None


def _rewrite(editor: Locator, text: str) -> None:
    """Write something else. The editor removes what was there: the browser would keep the look of a marked text that
    it replaces, as a style of its own, which the content policy forbids it."""
    editor.press("ControlOrMeta+a")
    editor.press("Delete")
    editor.fill(text)


def test_a_flow_is_looked_at_from_all_sides(page: Page, server: WebServer) -> None:
    page.goto("/flows/survey")
    expect(page.get_by_role("img", name="survey: prepare, measure, report")).to_be_visible()
    page.get_by_role("link", name="Deployments").click()
    page.reload()
    expect(page.get_by_role("heading", name="Version 1")).to_be_visible()
    page.get_by_role("link", name="Model").click()
    expect(page.get_by_role("textbox", name="Model of survey")).to_contain_text('"survey"')
    page.go_back()
    expect(page.get_by_role("heading", name="Version 1")).to_be_visible()


def test_a_file_from_here_is_given_to_a_flow(page: Page, server: WebServer, tmp_path: Path) -> None:
    server.deploy("counted", COUNTED)
    (tmp_path / "poem.txt").write_text("what is this life")
    page.goto("/run/counted")
    page.get_by_label("text: a file from here").set_input_files(tmp_path / "poem.txt")
    expect(page.get_by_role("button", name="Leave out poem.txt")).to_be_visible()
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/cases/counted-*")
    case = server.client.cases(flow="counted")[0]
    assert server.client.wait(case.id, timeout_s=PATIENCE_S).status == "completed"
    page.goto(f"/cases/{case.id}?view=items&item=count")
    expect(page.get_by_role("complementary", name="Item count")).to_contain_text("it has 4 words")


SHEETS = """\
name: sheets
inputs:
  samples: {type: list}
  runs: {type: table, columns: {depth: number}}
steps: [echo]
"""


def test_a_sheet_of_samples_is_given_to_a_list(page: Page, server: WebServer, tmp_path: Path) -> None:
    server.deploy("sheets", SHEETS)
    sheet = tmp_path / "samples.csv"
    sheet.write_text("sample,lane\ns1,1\ns2\n")
    page.goto("/run/sheets")
    chosen = page.get_by_label("samples: a table from here")
    chosen.set_input_files(sheet)
    expect(page.get_by_role("list", name="Problems of samples")).to_contain_text("samples.csv, line 3")
    sheet.write_text("sample,lane\n" + "".join(f"s{number},{number}\n" for number in range(5)))
    chosen.set_input_files(sheet)
    expect(page.get_by_text("5 entries read")).to_be_visible()
    first = page.get_by_role("region", name="First entries of samples")
    expect(first.get_by_role("row")).to_have_count(6)
    expect(page.get_by_role("textbox", name="samples")).to_have_count(0)
    page.get_by_role("button", name="samples: edit as text").click()
    expect(page.get_by_role("textbox", name="samples")).to_contain_text('"sample": "s0"')
    expect(first).to_contain_text("and 2 entries more")
    page.get_by_role("textbox", name="runs").fill("run\tdepth\nr1\t30")
    expect(page.get_by_text("1 entry read")).to_be_visible()
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/cases/sheets-*")
    given = server.client.cases(flow="sheets")[0].inputs
    assert given["samples"][:2] == [{"sample": "s0", "lane": "0"}, {"sample": "s1", "lane": "1"}]
    assert given["runs"] == [{"run": "r1", "depth": 30}]


def test_ui_1_files_of_the_same_content_are_all_given(page: Page, server: WebServer, tmp_path: Path) -> None:
    server.deploy("paired", PAIRED)
    for name in ("left.txt", "right.txt"):
        (tmp_path / name).write_text("the same words")
    page.goto("/run/paired")
    chosen = page.get_by_label("texts: files from here")
    chosen.set_input_files([tmp_path / "left.txt", tmp_path / "right.txt"])
    leave_out = page.get_by_role("button", name=re.compile("^Leave out"))
    expect(leave_out).to_have_count(2)
    chosen.set_input_files(tmp_path / "left.txt")
    expect(page.get_by_text("Files from here")).to_be_visible()
    expect(leave_out).to_have_count(2)
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/cases/paired-*")
    case = server.client.cases(flow="paired")[0]
    assert [each["name"] for each in case.inputs["texts"]] == ["left.txt", "right.txt"]


def test_nothing_starts_before_a_chosen_file_is_stored(page: Page, server: WebServer, tmp_path: Path) -> None:
    server.deploy("counted", COUNTED)
    (tmp_path / "epic.txt").write_text("sing o goddess")
    held: list[Route] = []
    page.route("**/api/v1/files/*", lambda route: held.append(route))
    page.goto("/run/counted")
    start = page.get_by_role("button", name="Start")
    expect(start).to_be_enabled()
    with page.expect_request("**/api/v1/files/*"):
        page.get_by_label("text: a file from here").set_input_files(tmp_path / "epic.txt")
    expect(start).to_be_disabled()
    expect(start).to_have_accessible_description("Start waits until epic.txt is stored")
    expect(page.get_by_role("status").filter(has_text="epic.txt")).to_be_visible()
    held.pop().continue_()
    expect(start).to_be_enabled()
    expect(start).to_have_accessible_description("")
    start.click()
    page.wait_for_url("**/cases/counted-*")
    assert server.client.cases(flow="counted")[0].inputs["text"]["name"] == "epic.txt"


def test_a_flow_gets_a_next_version_and_is_removed(page: Page, server: WebServer) -> None:
    server.deploy("brief", "name: brief\nsteps: [echo one]\n")
    page.goto("/flows/brief?view=edit")
    page.get_by_role("textbox", name="Flow file").fill("# the second\nname: brief\nsteps: [echo two]\n")
    page.get_by_role("button", name="Deploy brief").click()
    expect(page.get_by_text("version 2")).to_be_visible()
    assert server.client.flow("brief").version == 2
    page.get_by_role("link", name="File", exact=True).click()
    expect(page.get_by_role("textbox", name="File of brief")).to_contain_text("# the second")
    case = server.client.start("brief").id
    page.goto(f"/cases/{case}?view=file")
    expect(page.get_by_role("textbox", name="File of brief")).to_contain_text("# the second")
    expect(page.get_by_role("button", name="Copy the file")).to_be_visible()
    page.goto("/flows/brief")
    page.get_by_role("button", name="Remove …").click()
    expect(page.get_by_role("dialog")).to_contain_text("Its cases stay")
    confirm(page, "Remove")
    page.wait_for_url("**/flows")
    expect(page.get_by_role("link", name="brief", exact=True)).to_have_count(0)


def test_ui_1_what_was_typed_stays_when_the_flow_has_another_version(server: WebServer, page: Page) -> None:
    first = TYPED.replace("name: typed", "name: retold")
    server.deploy("retold", first)
    page.goto("/run/retold")
    page.get_by_label("copies").fill("3")
    server.deploy(
        "retold", first.replace("names: {type: list, default: [ada]", "colour: {default: red}\n  names: {default: bob")
    )

    page.wait_for_timeout(FRESH_MS)
    page.evaluate("['offline', 'online'].forEach(each => window.dispatchEvent(new Event(each)))")
    expect(page.get_by_label("colour")).to_have_value("red")
    expect(page.get_by_role("textbox", name="names")).to_have_value("bob")
    expect(page.get_by_label("copies")).to_have_value("3")


def test_ui_1_a_case_is_run_again_with_what_its_own_flow_takes(server: WebServer, page: Page) -> None:
    first = "name: deep\ninputs: {depth: {type: number, default: 3}}\njobs:\n  dig: {run: 'echo ${{ inputs.depth }}'}\n"
    server.deploy("deep", first)
    before = server.ended("deep")
    server.deploy("deep", first.replace("default: 3", "default: 8").replace("  dig", "  drill"))
    page.goto(f"/run/deep?rerun_of={before}")
    expect(page.get_by_role("img", name="deep: dig")).to_be_visible()
    expect(page.get_by_label("depth")).to_have_value("3")
    page.get_by_label("depth").fill("8")
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_text(f"runs {before} again")).to_be_visible()
    again = CaseId(page.url.rpartition("/")[2])
    assert server.client.case(again).inputs == {"depth": 8}
    server.came_to(again, "completed")
    assert [each["item"] for each in server.ask("GET", f"/cases/{again}/items")] == ["dig"]
