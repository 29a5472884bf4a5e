import { expect, it } from "vitest";
import { actionFor } from "@/components/commands";
import { partsWithItems } from "@/components/named-items";

it("an item that a sentence names is told from its words", () => {
  const items = { other: "other", "solve[1] (2)": "solve[1]", "solve[1]": "solve[1]" };
  const named = (text: string) => partsWithItems(text, items).flatMap((each) => (typeof each === "string" ? [] : [`${each.name} -> ${each.item}`]));
  expect(named("case night-1 failed after 4 s: other: no other disk")).toEqual(["other -> other"]);
  expect(partsWithItems("case night-1 failed after 4 s: failed: bad disk", { failed: "failed" })).toEqual(["case night-1 failed after 4 s: ", { name: "failed", item: "failed" }, ": bad disk"]);
  expect(named("solve[1] (2): exit code 4")).toEqual(["solve[1] (2) -> solve[1]"]);
  expect(named("report ran without the results of solve[1] (2) and other, which failed")).toEqual(["solve[1] (2) -> solve[1]", "other -> other"]);
  expect(named("another, otherwise")).toEqual([]);
  expect(partsWithItems("other: x", items)).toEqual([{ name: "other", item: "other" }, ": x"]);
});

it("the rest of what a sentence names is a list", () => {
  expect(actionFor("mendflow items night-1 --state failed")).toMatchObject({ label: "All that failed", link: { params: { case: "night-1" }, search: { view: "items", state: "failed" } } });
  expect(actionFor("mendflow history night-1")).toMatchObject({ link: { search: { view: "history" } } });
});
