"""Several cases are started at once, from a table of their inputs."""  # UI-1

from pathlib import Path

from playwright.sync_api import Page, Route, expect

from tests.web.watched import Complaints
from tests.web.web_server import WebServer

SAMPLED = """
name: sampled
inputs:
  sample: {type: string}
  depth: {type: number, default: 30}
jobs:
  say: {run: "echo '${{ inputs.sample }}'"}
"""


def test_ui_1_a_table_of_inputs_starts_a_case_for_each_row(page: Page, server: WebServer) -> None:
    server.deploy("sampled", SAMPLED)
    page.goto("/run/sampled")
    page.get_by_role("link", name="Several from a table").click()
    page.get_by_role("button", name="Start them").click()
    table = page.get_by_role("textbox", name="Table")
    expect(table).to_be_focused()
    table.fill("sample\tdepth\n00123\tdeep\n\t20\n")
    wrong = page.get_by_role("list", name="Problems of the table")
    expect(wrong).to_contain_text("Line 2, depth: “deep” is no number.")
    expect(wrong).to_contain_text("Line 3, sample: A value is needed.")
    expect(page.get_by_role("button", name="Start 2 cases")).to_be_disabled()
    table.fill("sample\tdepth\n00123\t\n1.10\t20\n")
    shown = page.get_by_role("table", name="What would start")
    expect(shown.get_by_role("row", name="2 00123")).to_contain_text("as the flow has it")
    assert server.client.cases(flow="sampled") == []
    page.get_by_role("button", name="Start 2 cases").click()
    page.get_by_role("link", name="See the 2 cases").click()
    expect(page.get_by_role("grid", name="Cases").get_by_role("row")).to_have_count(3)
    cases = sorted((each.inputs for each in server.client.cases(flow="sampled")), key=str)
    assert cases == [{"sample": "00123"}, {"sample": "1.10", "depth": 20}]


def test_ui_1_what_was_started_is_said_where_a_row_is_refused(
    page: Page, server: WebServer, complaints: Complaints, tmp_path: Path
) -> None:
    complaints.expected.append("503")  # what the browser itself says of the refusal
    server.deploy("halved", SAMPLED.replace("name: sampled", "name: halved"))
    (tmp_path / "samples.csv").write_text("sample,depth\nNA1,1\nNA2,2\nNA3,3\n")
    refusing = [True]

    def answer(route: Route) -> None:
        if refusing and "NA2" in (route.request.post_data or ""):
            route.fulfill(status=503, json={"error": "busy", "message": "the server is busy"})
        else:
            route.continue_()

    page.route("**/api/v1/cases", answer)
    page.goto("/run/halved?table=true")
    page.get_by_label("A .csv or .tsv file").set_input_files(tmp_path / "samples.csv")
    page.get_by_role("button", name="Start 3 cases").click()
    expect(page.get_by_text("1 case was started, up to line 2; line 3 was refused")).to_be_visible()
    refusing.clear()
    page.get_by_role("button", name="Start the other 2").click()
    expect(page.get_by_role("link", name="See the 3 cases")).to_be_visible()
    assert sorted(each.inputs["sample"] for each in server.client.cases(flow="halved")) == ["NA1", "NA2", "NA3"]
