import { expect, it } from "vitest";
import { itemsBefore } from "@/pages/user-task/steps-before";
import type { GraphNode } from "@/pages/case/queries";

const node = (name: string, ...items: string[]) => ({ id: `n-${name}`, name, items_sample: items }) as unknown as GraphNode;

it("finds the items of the steps that lead to a task, and of no others", () => {
  const nodes = [node("split", "split"), node("clean", "clean[0]", "clean[1]"), node("review", "review"), node("publish")];
  const edges = [["split", "clean", "control"], ["clean", "review", "data"], ["split", "review", "repair"], ["review", "publish", "control"]].map(([source, target, kind]) => ({ source: `n-${source}`, target: `n-${target}`, kind: kind as "control", note: "" }));
  expect(itemsBefore({ nodes, edges }, "review")).toEqual(["clean[0]", "clean[1]"]);
  expect(itemsBefore({ nodes, edges }, "clean[7]")).toEqual(["split"]);
  expect(itemsBefore({ nodes, edges }, "unknown")).toEqual([]);
});
