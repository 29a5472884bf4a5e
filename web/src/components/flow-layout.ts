/** Places for a graph whose nodes may stand in others: from left to right, each after all that lead to it. */

export interface DrawnNode {
  id: string;
  name: string;
  kind?: string;
  flow?: string;
  note?: string;
  parent?: string | null;
}

export interface DrawnEdge {
  source: string;
  target: string;
}

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Layout {
  width: number;
  height: number;
  boxes: Map<string, Box>;
}

const LEAF_HEIGHT = 40;
const GAP_X = 44;
const GAP_Y = 14;
const PAD = 14;
const HEAD = 26;

function leafWidth(name: string, note = ""): number {
  return Math.min(260, Math.max(136, 46 + name.length * 7, 24 + note.length * 6.6));
}

export function layOut(nodes: readonly DrawnNode[], edges: readonly DrawnEdge[]): Layout {
  const known = new Map(nodes.map((node) => [node.id, node]));
  const children = new Map<string, DrawnNode[]>();
  for (const node of nodes) {
    const parent = node.parent && known.has(node.parent) ? node.parent : "";
    children.set(parent, [...(children.get(parent) ?? []), node]);
  }
  const boxes = new Map<string, Box>();

  /** The one that stands directly in `parent` and is, or holds, the node. */
  const inside = (id: string, parent: string): string | null => {
    let at = known.get(id);
    for (let steps = 0; at && steps < 100; steps += 1) {
      const above = at.parent && known.has(at.parent) ? at.parent : "";
      if (above === parent) return at.id;
      at = known.get(above);
    }
    return null;
  };

  const place = (parent: string): { width: number; height: number } => {
    const members = children.get(parent) ?? [];
    const sizes = new Map<string, { width: number; height: number }>();
    for (const member of members) {
      if (!children.has(member.id)) sizes.set(member.id, { width: leafWidth(member.name, [member.kind, member.flow, member.note].filter(Boolean).join(" · ")), height: LEAF_HEIGHT });
      else {
        const inner = place(member.id);
        sizes.set(member.id, { width: Math.max(inner.width + 2 * PAD, leafWidth(member.name)), height: inner.height + HEAD + PAD });
      }
    }
    const before = new Map<string, Set<string>>(members.map((member) => [member.id, new Set()]));
    for (const edge of edges) {
      const from = inside(edge.source, parent);
      const to = inside(edge.target, parent);
      if (from && to && from !== to) before.get(to)?.add(from);
    }
    const columns: string[][] = [];
    for (const [id, column] of columnsOf(members.map((member) => member.id), before)) (columns[column] ??= []).push(id);
    let x = 0;
    let height = 0;
    for (const column of columns) {
      const width = Math.max(...column.map((id) => sizes.get(id)?.width ?? 0));
      let y = 0;
      for (const id of column) {
        const size = sizes.get(id) ?? { width: 0, height: 0 };
        boxes.set(id, { x, y, ...size });
        y += size.height + GAP_Y;
      }
      height = Math.max(height, y - GAP_Y);
      x += width + GAP_X;
    }
    for (const column of columns) centre(column, boxes, height);
    return { width: Math.max(0, x - GAP_X), height };
  };
  const whole = place("");
  shift("", 0, 0, children, boxes);
  return { ...whole, boxes };
}

/** The column of each: one further than the last of those before it. A circle is cut where it is met. */
function columnsOf(ids: readonly string[], before: Map<string, Set<string>>): Map<string, number> {
  const found = new Map<string, number>();
  const walk = (id: string, under: Set<string>): number => {
    const known = found.get(id);
    if (known !== undefined) return known;
    if (under.has(id)) return -1;
    const deeper = new Set(under).add(id);
    let column = 0;
    for (const each of before.get(id) ?? []) column = Math.max(column, walk(each, deeper) + 1);
    found.set(id, column);
    return column;
  };
  for (const id of ids) walk(id, new Set());
  return found;
}

function centre(column: readonly string[], boxes: Map<string, Box>, height: number): void {
  const last = boxes.get(column.at(-1) ?? "");
  const free = last ? (height - last.y - last.height) / 2 : 0;
  for (const id of column) {
    const box = boxes.get(id);
    if (box) box.y += free;
  }
}

/** From places within the parent to places in the whole. */
function shift(parent: string, x: number, y: number, children: Map<string, DrawnNode[]>, boxes: Map<string, Box>): void {
  for (const member of children.get(parent) ?? []) {
    const box = boxes.get(member.id);
    if (!box) continue;
    box.x += x;
    box.y += y;
    shift(member.id, box.x + PAD, box.y + HEAD, children, boxes);
  }
}
