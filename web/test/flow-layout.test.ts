import { expect, it } from "vitest";
import { layOut, type Box, type Point } from "@/components/flow-layout";

const NODES = ["split", "clean", "reduce", "review", "publish"].map((name) => ({ id: name, name, parent: null }));
const EDGES = [["split", "clean"], ["clean", "reduce"], ["reduce", "review"], ["review", "publish"], ["reduce", "publish"], ["split", "publish"]].map(([source = "", target = ""]) => ({ source, target }));

function isIn({ x, y }: Point, box: Box): boolean {
  return x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height;
}

/** Points of an edge where it runs straight; elsewhere it bends between two layers. */
function straight(route: readonly Point[]): Point[] {
  const found: Point[] = [];
  for (let at = 0; at + 1 < route.length; at += 2) {
    const [from, to] = [route[at] as Point, route[at + 1] as Point];
    for (let part = 0; part <= 1; part += 0.05) found.push({ x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part });
  }
  return found;
}

it.each(["right", "down"] as const)("an edge that passes others has a way of its own: %s", (direction) => {
  const layout = layOut(NODES, EDGES, direction);
  expect(layout.routes[4]).toHaveLength(5);
  expect(layout.routes[5]).toHaveLength(9);
  for (const [at, { source, target }] of EDGES.entries())
    for (const [id, box] of layout.boxes)
      if (id !== source && id !== target) expect(straight(layout.routes[at] ?? []).filter((point) => isIn(point, box))).toEqual([]);
});

it("a chain is long in the direction in which it is drawn, and frames hold what belongs to them", () => {
  const nodes = [...NODES, { id: "inner", name: "inner", parent: "clean" }];
  const [right, down] = [layOut(nodes, EDGES, "right"), layOut(nodes, EDGES, "down")];
  expect(right.width).toBeGreaterThan(3 * right.height);
  expect(down.height).toBeGreaterThan(down.width);
  for (const { boxes } of [right, down]) {
    const [inner, outer] = [boxes.get("inner") as Box, boxes.get("clean") as Box];
    expect(isIn(inner, outer) && isIn({ x: inner.x + inner.width, y: inner.y + inner.height }, outer)).toBe(true);
  }
});

it.each([2, 3, 4, 5, 6, 7, 9])("%i steps side by side stand in rows that fit, and no edge passes over a step", (count) => {
  const middle = Array.from({ length: count }, (_, at) => `part${at}`);
  const nodes = ["split", ...middle, "join"].map((name) => ({ id: name, name, parent: null }));
  const edges = middle.flatMap((name) => [{ source: "split", target: name }, { source: name, target: "join" }]);
  const layout = layOut(nodes, edges, "down", { widest: 522, sizeOf: () => ({ width: 152, height: 72 }) });
  expect(layout.width).toBeLessThanOrEqual(522);
  const tops = new Set(middle.map((name) => layout.boxes.get(name)?.y));
  expect(tops.size).toBe(count <= 3 ? 1 : count <= 6 ? 2 : Math.ceil(count / 2));
  for (const [at, { source, target }] of edges.entries()) {
    const points = straight(layout.routes[at] ?? []);
    for (const [id, box] of layout.boxes) if (id !== source && id !== target) expect(points.filter((point) => isIn(point, box))).toEqual([]);
  }
});

it("what leads to several rows, or comes from them, passes the rows between on one way", () => {
  const nodes = ["split", "a", "b", "c", "d", "join"].map((name) => ({ id: name, name, parent: null }));
  const edges = ["a", "b", "c", "d"].flatMap((name) => [{ source: "split", target: name }, { source: name, target: "join" }]);
  const { routes } = layOut(nodes, edges, "down", { widest: 400, sizeOf: () => ({ width: 152, height: 72 }) });
  const ways = (source: string, target: string) => routes[edges.findIndex((edge) => edge.source === source && edge.target === target)]?.slice(2, -1);
  expect(ways("split", "c")).toEqual(ways("split", "d"));
  expect(ways("a", "join")).toEqual(ways("b", "join"));
  expect(ways("split", "c")).toHaveLength(2);
});
