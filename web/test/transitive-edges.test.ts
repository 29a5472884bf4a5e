import { expect, it } from "vitest";
import { layOut } from "@/components/flow-layout";
import { placePlainly } from "@/components/plain-layout";
import { withoutTransitiveEdges } from "@/components/transitive-edges";

const lines = (...pairs: string[]) => pairs.map((pair) => ({ source: pair[0] as string, target: pair[1] as string }));
const said = (edges: readonly { source: string; target: string }[]) => edges.map(({ source, target }) => source + target);

it("leaves out what goes past steps that lie between anyway", () => {
  expect(said(withoutTransitiveEdges(lines("ab", "bc", "ac", "cd", "ad", "bd")))).toEqual(["ab", "bc", "cd"]);
  expect(said(withoutTransitiveEdges(lines("ab", "ac", "bd", "cd", "ad")))).toEqual(["ab", "ac", "bd", "cd"]);
});
it("keeps what says more than an order, and every edge of what goes in a circle", () => {
  const edges = [...lines("ab", "bc"), { source: "a", target: "c", note: "if it is empty" }, { source: "a", target: "c", kind: "repair" }];
  expect(withoutTransitiveEdges(edges)).toEqual(edges);
  expect(withoutTransitiveEdges(lines("ab", "bc", "ca", "ac"))).toHaveLength(4);
});
it("so a chain is a straight line, wherever it is drawn", () => {
  const ids = ["a", "b", "c", "d"];
  const edges = withoutTransitiveEdges(lines("ab", "bc", "cd", "ac", "bd", "ad"));
  const placed = placePlainly(ids.map((id) => ({ id, parent: null, width: 100, height: 40 })), edges);
  expect(new Set(ids.map((id) => placed?.get(id)?.y)).size).toBe(1);
  const { boxes } = layOut(ids.map((id) => ({ id, name: id, parent: null })), edges, "right");
  expect(new Set(ids.map((id) => boxes.get(id)?.y)).size).toBe(1);
});
