import { describe, expect, it } from "vitest";
import { itemText } from "@/components/item-text";
import { failedRows } from "@/pages/case/failed-rows";

function call(index: number, element: string) {
  return { item: `call[${index}]`, name: "call", element };
}

function texts(left: Parameters<typeof failedRows>[0], right: Parameters<typeof failedRows>[0]) {
  return failedRows(left, right).map((sides) => sides.map((each) => each && itemText(each)));
}

describe("what failed in two cases", () => {
  it("stands side by side where it is for the same value, whatever its index", () => {
    expect(texts([call(3, "PT-2"), call(1, "PT-9")], [call(0, "PT-7"), call(1, "PT-2")])).toEqual([
      ["call[3] (PT-2)", "call[1] (PT-2)"],
      ["call[1] (PT-9)", undefined],
      [undefined, "call[0] (PT-7)"],
    ]);
  });

  it("stands side by side by its name where it is for no value, and values that come twice go in pairs", () => {
    const report = { item: "report", name: "report", element: "" };
    expect(texts([report, call(0, "a"), call(1, "a")], [call(2, "a"), call(4, "a"), call(5, "a"), report])).toEqual([
      ["report", "report"],
      ["call[0] (a)", "call[2] (a)"],
      ["call[1] (a)", "call[4] (a)"],
      [undefined, "call[5] (a)"],
    ]);
  });

  it("is apart where other jobs are for the same value", () => {
    const align = { item: "align[1]", name: "align", element: "PT-2" };
    expect(texts([align], [call(1, "PT-2")])).toEqual([["align[1] (PT-2)", undefined], [undefined, "call[1] (PT-2)"]]);
  });
});
