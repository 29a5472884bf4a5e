import { expect, it } from "vitest";
import { itemText } from "@/components/item-text";
import { decisionWords, itemWords } from "@/components/recovery/decision-words";

it("calls an item of a loop on the page of a cause as on that of its case", () => {
  const named = { item: "solve[1]", task: "solve", element: "2" };
  expect(itemWords(named)).toBe("solve[1] (2)");
  expect(itemWords(named)).toBe(itemText(named));
  expect(itemWords({ item: "rating[8]", element: "G09" })).toBe("rating[8] (G09)");
  expect(itemWords({ item: "solve[2]", element: "" })).toBe("solve[2]");
  expect(itemWords({ item: null, element: "" })).toBe("");
  const at = new Date(2026, 3, 1, 10, 0).getTime();
  expect(decisionWords({ ...named, case: "night-1", at }, at)).toContain("night-1 · solve[1] (2) · ");
});
