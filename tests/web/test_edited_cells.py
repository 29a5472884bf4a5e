"""Tables of inputs are edited cell by cell, also where a cell holds a list or an object."""  # UI-1

from playwright.sync_api import Page, expect

from tests.web.web_server import WebServer

CATALOGUE = """
name: catalogue
inputs:
  fields: {type: list, default: []}
  stars:
    type: list
    default:
      - {name: vega, serial: "007", magnitudes: [0.03, 1.0], place: {ra: 279.2}}
      - {name: deneb, serial: "1.10", magnitudes: [1.25], place: {ra: 310.3}}
jobs:
  say: {run: echo said}
"""


def test_ui_1_a_list_and_an_object_are_edited_in_their_cells(page: Page, server: WebServer) -> None:
    server.deploy("catalogue", CATALOGUE)
    page.goto("/run/catalogue")
    cell = page.get_by_role("button", name="edit magnitudes of entry 1")
    expect(cell).to_have_text("0.03, 1.0")
    cell.click()
    field = page.get_by_role("textbox", name="magnitudes of entry 1")
    expect(field).to_have_value("0.03\n1.0")
    field.fill("0.03\n1.0\n2.5")
    page.get_by_role("button", name="edit place of entry 2").click()
    place = page.get_by_role("textbox", name="place of entry 2")
    place.fill('{"ra": ')
    page.get_by_role("button", name="Start").click()
    expect(place).to_be_focused()
    expect(place).to_have_attribute("aria-invalid", "true")
    assert server.client.cases(flow="catalogue") == []
    place.fill('{"ra": 311}')
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/cases/catalogue-*")
    (case,) = server.client.cases(flow="catalogue")
    assert repr(case.inputs["stars"]) == repr(
        [
            {"name": "vega", "serial": "007", "magnitudes": [0.03, 1.0, 2.5], "place": {"ra": 279.2}},
            {"name": "deneb", "serial": "1.10", "magnitudes": [1.25], "place": {"ra": 311}},
        ]
    )


def test_ui_1_a_row_of_a_table_of_starts_is_corrected_in_its_cell(page: Page, server: WebServer) -> None:
    server.deploy("several", CATALOGUE.replace("name: catalogue", "name: several"))
    page.goto("/run/several?table=true")
    page.get_by_role("textbox", name="Table").fill('fields\tstars\nm31, m33\t[{"name": \nm42\t\n')
    table = page.get_by_role("table", name="What would start")
    expect(table.get_by_role("row").nth(1)).to_contain_text('["m31","m33"]')
    table.get_by_role("button", name="edit stars of line 2").click()
    table.get_by_role("textbox", name="stars of line 2").fill('[{"name": "vega"}]')
    table.get_by_role("textbox", name="stars of line 2").press("Control+Enter")
    page.get_by_role("button", name="Start 2 cases").click()
    expect(page.get_by_role("link", name="See the 2 cases")).to_be_visible()
    cases = sorted((each.inputs for each in server.client.cases(flow="several")), key=str)
    assert cases == [{"fields": ["m31", "m33"], "stars": [{"name": "vega"}]}, {"fields": ["m42"]}]
