/** Places for a graph whose nodes may stand in others: from left to right or from top to bottom, each after all that lead to it.
 * An edge that passes others has a lane of its own between them. */

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

export interface Point {
  x: number;
  y: number;
}

export type Direction = "right" | "down";

export interface Layout {
  direction: Direction;
  width: number;
  height: number;
  boxes: Map<string, Box>;
  /** Of each edge, in their order, the points that it goes through: it runs straight from each of odd place to the next one, and
   * bends between the others. */
  routes: Point[][];
}

const LEAF_HEIGHT = 40;
const BETWEEN: Record<Direction, { layers: number; nodes: number }> = { right: { layers: 44, nodes: 14 }, down: { layers: 34, nodes: 20 } };
const LANE = 6;
const ROWS_MAX = 24;
const PAD = 14;
const HEAD = 26;

/** Where edges pass a layer between its boxes: one, or several that come from, or lead to, the same. */
interface Lane extends DrawnNode {
  edges: number[];
  isShared: boolean;
}

export interface LayoutWish {
  /** The size of what holds nothing; else it is as wide as its words. */
  sizeOf?: (node: DrawnNode) => { width: number; height: number };
  /** How much room what holds others has above them. */
  head?: number;
  /** From top to bottom: what stands side by side and is wider than this stands in several rows. */
  widest?: number;
}

function leafWidth(name: string, note = ""): number {
  return Math.min(260, Math.max(136, 46 + name.length * 7, 24 + note.length * 6.6));
}

export function ownSize({ name, kind, flow, note }: DrawnNode): { width: number; height: number } {
  return { width: leafWidth(name, [kind, flow, note].filter(Boolean).join(" · ")), height: LEAF_HEIGHT };
}

/** A layer in as few rows as its room allows, all about as long. In each but the last there is a way to the rows below, in each
 * but the first one from the rows above. What would need very many rows stays in one. */
function rowsOf(layer: readonly string[], widthOf: (id: string) => number, room: number): string[][] {
  const { nodes: gap } = BETWEEN.down;
  const narrowest = Math.min(...layer.map(widthOf));
  for (let most = Math.min(layer.length, Math.floor((room + gap) / (narrowest + gap))); most > 1; most -= 1) {
    const long = Math.ceil(layer.length / Math.ceil(layer.length / most));
    const rows = Array.from({ length: Math.ceil(layer.length / long) }, (_, at) => layer.slice(at * long, (at + 1) * long));
    const ways = Math.min(rows.length - 1, 2);
    if (rows.every((row) => row.reduce((sum, id) => sum + widthOf(id) + gap, -gap) + ways * (LANE + gap) <= room)) return rows.length <= ROWS_MAX ? rows : [[...layer]];
  }
  return layer.length <= ROWS_MAX ? layer.map((id) => [id]) : [[...layer]];
}

export function layOut(nodes: readonly DrawnNode[], edges: readonly DrawnEdge[], direction: Direction = "right", { sizeOf = ownSize, head = HEAD, widest = Infinity }: LayoutWish = {}): Layout {
  const across = direction === "down";
  const gap = BETWEEN[direction];
  const known = new Map(nodes.map((node) => [node.id, node]));
  const children = new Map<string, DrawnNode[]>();
  for (const node of nodes) {
    const parent = node.parent && known.has(node.parent) ? node.parent : "";
    children.set(parent, [...(children.get(parent) ?? []), node]);
  }
  const boxes = new Map<string, Box>();
  const lanes = new Map<string, Lane[]>();
  /** Where the layer of each ends, within its parent: no box of it reaches further. */
  const ends = new Map<string, { parent: string; at: number }>();

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

  const place = (parent: string, room: number): { width: number; height: number } => {
    const members = children.get(parent) ?? [];
    const sizes = new Map<string, { width: number; height: number }>();
    for (const member of members) {
      if (!children.has(member.id)) sizes.set(member.id, sizeOf(member));
      else {
        const inner = place(member.id, room - 2 * PAD);
        sizes.set(member.id, { width: Math.max(inner.width + 2 * PAD, leafWidth(member.name)), height: inner.height + head + PAD });
      }
    }
    const before = new Map<string, Set<string>>(members.map((member) => [member.id, new Set()]));
    const lines = edges.flatMap((edge, at) => {
      const from = inside(edge.source, parent);
      const to = inside(edge.target, parent);
      return from && to && from !== to ? [{ from, to, at }] : [];
    });
    for (const { from, to } of lines) before.get(to)?.add(from);
    const ranks: string[][] = [];
    for (const [id, layer] of layersOf(members.map((member) => member.id), before)) (ranks[layer] ??= []).push(id);
    const rows = ranks.map((layer) => (across ? rowsOf(layer, (id) => sizes.get(id)?.width ?? 0, room) : [layer]));
    const layers = rows.flat();
    /** The layer that each row was a part of. */
    const rankAt = rows.flatMap((each, at) => each.map(() => at));
    const layerOf = new Map(layers.flatMap((row, at) => row.map((id) => [id, at])));
    const rankOf = (id: string) => rankAt[layerOf.get(id) ?? 0];
    const leads = new Map<string, string[]>();
    const lead = (from: string, to: string) => {
      const known = leads.get(to);
      if (known) known.push(from);
      else leads.set(to, [from]);
    };
    const own = new Map<string, Lane>();
    for (const { from, to, at } of lines) {
      let last = from;
      for (let layer = (layerOf.get(from) ?? 0) + 1; layer < (layerOf.get(to) ?? 0); layer += 1) {
        // What leads to, or comes from, several rows of one layer passes the rows between on one way.
        const shared = rankAt[layer] === rankOf(to) ? `from ${from}` : rankAt[layer] === rankOf(from) ? `to ${to}` : "";
        const id = `lane ${shared || at} ${layer}`;
        const known = own.get(id);
        if (known) known.edges.push(at);
        else {
          own.set(id, { id, name: "", parent, edges: [at], isShared: Boolean(shared) });
          layers[layer]?.push(id);
        }
        lead(last, id);
        last = id;
      }
      lead(last, to);
    }
    lanes.set(parent, [...own.values()]);
    const thick = (id: string) => (own.has(id) ? 0 : (across ? sizes.get(id)?.height : sizes.get(id)?.width) ?? 0);
    const long = (id: string) => (own.has(id) ? LANE : (across ? sizes.get(id)?.width : sizes.get(id)?.height) ?? 0);
    const middles = new Map<string, number>();
    const middleOf = (id: string) => {
      const found = (leads.get(id) ?? []).map((each) => middles.get(each) ?? 0);
      return found.length ? found.reduce((sum, each) => sum + each, 0) / found.length : 0;
    };
    let start = 0;
    let longest = 0;
    for (const layer of layers) {
      const ordered = layer
        .filter((id) => !own.get(id)?.isShared)
        .map((id, at) => ({ id, at, middle: middleOf(id) }))
        .toSorted((one, other) => one.middle - other.middle || one.at - other.at);
      ordered.splice(Math.ceil(ordered.length / 2), 0, ...layer.filter((id) => own.get(id)?.isShared).map((id) => ({ id, at: 0, middle: 0 })));
      const whole = ordered.reduce((sum, { id }) => sum + long(id) + gap.nodes, -gap.nodes);
      const depth = Math.max(...layer.map(thick));
      let at = -whole / 2;
      for (const { id } of ordered) {
        middles.set(id, at + long(id) / 2);
        const size = own.has(id) ? (across ? { width: LANE, height: depth } : { width: depth, height: LANE }) : (sizes.get(id) ?? { width: 0, height: 0 });
        boxes.set(id, across ? { x: at, y: start, ...size } : { x: start, y: at, ...size });
        ends.set(id, { parent, at: start + depth });
        at += long(id) + gap.nodes;
      }
      longest = Math.max(longest, whole);
      start += depth + gap.layers;
    }
    for (const layer of layers)
      for (const id of layer) {
        const box = boxes.get(id);
        if (box && across) box.x += longest / 2;
        else if (box) box.y += longest / 2;
      }
    const whole = Math.max(0, start - gap.layers);
    return across ? { width: longest, height: whole } : { width: whole, height: longest };
  };
  const whole = place("", widest);
  shift("", 0, 0, head, children, lanes, boxes);

  const alongOf = (point: Point) => (across ? point.y : point.x);
  const ofLane = new Map<number, Box[]>();
  for (const each of [...lanes.values()].flat()) {
    const box = boxes.get(each.id);
    if (!box) continue;
    for (const edge of each.edges) {
      const known = ofLane.get(edge);
      if (known) known.push(box);
      else ofLane.set(edge, [box]);
    }
  }
  const routes = edges.map((edge, at) => {
    const from = boxes.get(edge.source);
    const to = boxes.get(edge.target);
    if (!from || !to) return [];
    const left = exitOf(from, across);
    const end = ends.get(edge.source);
    const parent = end && end.parent ? boxes.get(end.parent) : undefined;
    const from0 = parent ? (across ? parent.y + head : parent.x + PAD) : 0;
    const along = Math.max(alongOf(left), (end?.at ?? 0) + from0);
    const lanesOf = (ofLane.get(at) ?? []).toSorted((one, other) => alongOf(one) - alongOf(other));
    return [left, across ? { x: left.x, y: along } : { x: along, y: left.y }, ...lanesOf.flatMap((lane) => [entryOf(lane, across), exitOf(lane, across)]), entryOf(to, across)];
  });
  return { direction, ...whole, boxes: new Map([...boxes].filter(([id]) => known.has(id))), routes };
}

function entryOf(box: Box, across: boolean): Point {
  return across ? { x: box.x + box.width / 2, y: box.y } : { x: box.x, y: box.y + box.height / 2 };
}

function exitOf(box: Box, across: boolean): Point {
  return across ? { x: box.x + box.width / 2, y: box.y + box.height } : { x: box.x + box.width, y: box.y + box.height / 2 };
}

/** An edge as the path of an SVG. */
export function pathOf(route: readonly Point[], direction: Direction): string {
  const [first, ...rest] = route;
  if (!first) return "";
  let last = first;
  let path = `M${first.x} ${first.y}`;
  for (const [at, point] of rest.entries()) {
    const isStraight = at % 2 === 0;
    const bend = (direction === "down" ? point.y - last.y : point.x - last.x) / 2;
    const [one, other] = direction === "down" ? [`${last.x} ${last.y + bend}`, `${point.x} ${point.y - bend}`] : [`${last.x + bend} ${last.y}`, `${point.x - bend} ${point.y}`];
    path += isStraight ? `L${point.x} ${point.y}` : `C${one} ${other} ${point.x} ${point.y}`;
    last = point;
  }
  return path;
}

/** The layer of each: one further than the last of those before it. A circle is cut where it is met. */
function layersOf(ids: readonly string[], before: Map<string, Set<string>>): Map<string, number> {
  const found = new Map<string, number>();
  const walk = (id: string, under: Set<string>): number => {
    const known = found.get(id);
    if (known !== undefined) return known;
    if (under.has(id)) return -1;
    const deeper = new Set(under).add(id);
    let layer = 0;
    for (const each of before.get(id) ?? []) layer = Math.max(layer, walk(each, deeper) + 1);
    found.set(id, layer);
    return layer;
  };
  for (const id of ids) walk(id, new Set());
  return found;
}

/** From places within the parent to places in the whole. */
function shift(parent: string, x: number, y: number, head: number, children: Map<string, DrawnNode[]>, lanes: Map<string, Lane[]>, boxes: Map<string, Box>): void {
  for (const member of [...(children.get(parent) ?? []), ...(lanes.get(parent) ?? [])]) {
    const box = boxes.get(member.id);
    if (!box) continue;
    box.x += x;
    box.y += y;
    shift(member.id, box.x + PAD, box.y + head, head, children, lanes, boxes);
  }
}
