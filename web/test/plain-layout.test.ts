import { expect, it } from "vitest";
import { placePlainly } from "@/components/plain-layout";

const node = (id: string, parent: string | null = null) => ({ id, parent, width: 100, height: 40 });
const lines = (...pairs: string[]) => pairs.map((pair) => ({ source: pair[0] as string, target: pair[1] as string }));

it("places what goes one after the other from left to right, and what goes at once one below the other", () => {
  const placed = placePlainly(["a", "b", "c", "d"].map((id) => node(id)), lines("ab", "ac", "bd", "cd"));
  const at = (id: string) => placed?.get(id) ?? { x: NaN, y: NaN };
  expect(at("a").x).toBeLessThan(at("b").x);
  expect(at("b").x).toBe(at("c").x);
  expect(at("b").y + 40).toBeLessThan(at("c").y);
  expect(at("d").x).toBeGreaterThan(at("c").x);
  expect(at("a").y).toBe(at("d").y);
});
it("does without lines", () => {
  expect(placePlainly([node("a"), node("b")], [])?.size).toBe(2);
});
it("leaves to others what would have lines over each other, or over a node, or nodes in nodes, or a circle", () => {
  const letters = ["a", "b", "c", "d"].map((id) => node(id));
  expect(placePlainly(letters, lines("ac", "ad", "bc", "bd"))).toBeNull();
  expect(placePlainly(letters.slice(0, 3), lines("ab", "bc", "ac"))).toBeNull();
  expect(placePlainly([node("a"), node("b", "a")], [])).toBeNull();
  expect(placePlainly(letters.slice(0, 2), lines("ab", "ba"))).toBeNull();
});
it("orders a column by what leads to it, so that no lines cross that need not", () => {
  const placed = placePlainly(["a", "b", "d", "c"].map((id) => node(id)), lines("ac", "bd"));
  expect(placed?.get("c")?.y).toBeLessThan(placed?.get("d")?.y ?? NaN);
});
