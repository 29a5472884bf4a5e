/** Places for a graph that is plain enough to be placed at once: side by side in columns, no line over another line or over a
 * node. Most flows are. For the others there is a layout of half a megabyte, which has to be loaded first. */
import type { LayoutNode, Placed } from "./graph-layout";

const NODES_MAX = 80;
const GAP_X = 44;
const GAP_Y = 18;

interface Line {
  source: string;
  target: string;
}

/** `null` if it is not plain: with nodes in nodes, in a circle, or with lines that would cross. */
export function placePlainly(nodes: readonly LayoutNode[], edges: readonly Line[]): Map<string, Placed> | null {
  const known = new Map(nodes.map((node) => [node.id, node]));
  if (nodes.length > NODES_MAX || nodes.some((node) => node.parent !== null && known.has(node.parent))) return null;
  const lines = edges.filter((edge) => edge.source !== edge.target && known.has(edge.source) && known.has(edge.target));
  const columns = columnsOf(nodes, lines);
  if (!columns) return null;
  const found = new Map<string, Placed>();
  let x = 0;
  for (const column of columns) {
    const ordered = column.map((node, at) => ({ node, at, middle: middleOf(node.id, lines, found) })).toSorted((one, other) => one.middle - other.middle || one.at - other.at);
    const height = ordered.reduce((sum, { node }) => sum + node.height + GAP_Y, -GAP_Y);
    let y = -height / 2;
    for (const { node } of ordered) {
      found.set(node.id, { x, y, width: node.width, height: node.height });
      y += node.height + GAP_Y;
    }
    x += Math.max(...column.map((node) => node.width)) + GAP_X;
  }
  return isClear(lines, found) ? found : null;
}

/** The nodes by how many come before them on the longest way; `null` if they go in a circle. */
function columnsOf(nodes: readonly LayoutNode[], lines: readonly Line[]): LayoutNode[][] | null {
  const column = new Map(nodes.map((node) => [node.id, 0]));
  for (let round = 0, moved = true; moved; round += 1) {
    if (round > nodes.length) return null;
    moved = false;
    for (const { source, target } of lines) {
      const after = (column.get(source) ?? 0) + 1;
      if ((column.get(target) ?? 0) >= after) continue;
      column.set(target, after);
      moved = true;
    }
  }
  const found: LayoutNode[][] = [];
  for (const node of nodes) (found[column.get(node.id) ?? 0] ??= []).push(node);
  return found;
}

/** Where the nodes before it stand, on average. */
function middleOf(id: string, lines: readonly Line[], placed: ReadonlyMap<string, Placed>): number {
  const before = lines.flatMap(({ source, target }) => (target === id ? [placed.get(source)] : [])).filter((each) => each !== undefined);
  return before.length ? before.reduce((sum, each) => sum + each.y + each.height / 2, 0) / before.length : 0;
}

function isClear(lines: readonly Line[], placed: ReadonlyMap<string, Placed>): boolean {
  const drawn = lines.map(({ source, target }) => {
    const from = placed.get(source) as Placed;
    const to = placed.get(target) as Placed;
    return { source, target, left: from.x + from.width, right: to.x, from: from.y + from.height / 2, to: to.y + to.height / 2 };
  });
  const height = (line: (typeof drawn)[number], x: number) => line.from + ((line.to - line.from) * (x - line.left)) / (line.right - line.left);
  for (const [at, one] of drawn.entries()) {
    for (const [id, box] of placed) {
      if (box.x < one.left || box.x + box.width > one.right || id === one.target) continue;
      const heights = [height(one, box.x), height(one, box.x + box.width)];
      if (Math.max(...heights) > box.y - GAP_Y / 2 && Math.min(...heights) < box.y + box.height + GAP_Y / 2) return false;
    }
    for (const other of drawn.slice(at + 1)) {
      const left = Math.max(one.left, other.left);
      const right = Math.min(one.right, other.right);
      if (left >= right || one.source === other.source || one.target === other.target) continue;
      if ((height(one, left) - height(other, left)) * (height(one, right) - height(other, right)) < 0) return false;
    }
  }
  return true;
}
