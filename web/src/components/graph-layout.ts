/** Places the nodes of a graph: a plain one at once, any other by elkjs in its own worker. The worker's file is shipped as
 * its makers made it, and is loaded when there is something for it to do. */
import ELK, { type ElkNode } from "elkjs/lib/elk-api";
import workerAddress from "elkjs/lib/elk-worker.min.js?url";
import { placePlainly } from "./plain-layout";

export interface LayoutNode {
  id: string;
  parent: string | null;
  width: number;
  height: number;
}

export interface Placed {
  x: number;
  y: number;
  width: number;
  height: number;
}

let elk: InstanceType<typeof ELK> | null = null;

const OPTIONS = {
  "elk.algorithm": "layered",
  "elk.hierarchyHandling": "INCLUDE_CHILDREN",
  "elk.layered.spacing.nodeNodeBetweenLayers": "44",
  "elk.spacing.nodeNode": "18",
  "elk.layered.nodePlacement.strategy": "NETWORK_SIMPLEX",
  "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
};
const INNER = { "elk.padding": "[top=54,left=14,bottom=14,right=14]" };

export async function place(nodes: readonly LayoutNode[], edges: readonly { source: string; target: string }[]): Promise<Map<string, Placed>> {
  const plain = placePlainly(nodes, edges);
  if (plain) return plain;
  elk ??= new ELK({ workerFactory: () => new Worker(workerAddress) });
  const made = new Map<string, ElkNode>(nodes.map((node) => [node.id, { id: node.id, width: node.width, height: node.height, children: [] }]));
  const top: ElkNode[] = [];
  for (const node of nodes) {
    const own = made.get(node.id) as ElkNode;
    const parent = node.parent === null ? undefined : made.get(node.parent);
    if (parent) {
      parent.children?.push(own);
      parent.layoutOptions = INNER;
    } else top.push(own);
  }
  const graph: ElkNode = {
    id: "root of all",
    layoutOptions: { ...OPTIONS, "elk.direction": "RIGHT" },
    children: top,
    edges: edges.filter((edge) => made.has(edge.source) && made.has(edge.target)).map((edge, at) => ({ id: `e${at}`, sources: [edge.source], targets: [edge.target] })),
  };
  const placed = await elk.layout(graph);
  const found = new Map<string, Placed>();
  const walk = (node: ElkNode) => {
    for (const child of node.children ?? []) {
      found.set(child.id, { x: child.x ?? 0, y: child.y ?? 0, width: child.width ?? 0, height: child.height ?? 0 });
      walk(child);
    }
  };
  walk(placed);
  return found;
}
