/** A flow as it will run, drawn before anything does: steps from left to right, or from top to bottom where that could not be read; what belongs together in a frame. */
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useLayoutEffect, useMemo, useRef, useState, type RefObject } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { TABLET_PX, useNarrow, usePhone } from "@/app/screen-widths";
import { layOut, ownSize, pathOf, type DrawnNode, type Layout } from "@/components/flow-layout";
import { isTooLong, roomFor } from "@/components/narrow-graph";
import { withoutTransitiveEdges } from "@/components/transitive-edges";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { exletOfNode, graphQuery } from "../case/queries";

type Graph = Schemas["GraphView"];

/** What is drawn smaller than this cannot be read. */
const SMALLEST = 0.92;
const MARGIN = 14;
/** A step where there is little room. */
const NARROW = 136;
const NARROW_ACROSS = 112;
const KIND_WORDS: Record<string, string> = { job: "job", "for-each": "for each", "user-task": "a person", call: "flow", stage: "files", receive: "waits for a message", invoke: "asks a partner", wait: "waits", choose: "one of", parallel: "at once", scope: "scope", while: "while", until: "until", pick: "first of", assign: "values", throw: "fails" };

function wordOf(kind: string): string {
  return KIND_WORDS[kind] ?? kind;
}

/** How wide the place is that it is drawn in; 0 as long as that is not known. */
function useRoom(place: RefObject<Element | null>): number {
  const [room, setRoom] = useState(0);
  useLayoutEffect(() => {
    const around = place.current?.parentElement;
    if (!around) return undefined;
    const read = () => {
      const { paddingLeft, paddingRight } = getComputedStyle(around);
      setRoom(around.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight));
    };
    const observer = new ResizeObserver(read);
    observer.observe(around);
    read();
    return () => observer.disconnect();
  }, [place]);
  return room;
}

/** As the page of a case draws it: from left to right unless that cannot be read, then from top to bottom, in as many rows as it
 * takes. Where there is less room than there, its steps are narrower. */
function fitted(graph: Graph, room: number, down: boolean): Layout {
  const right = layOut(graph.nodes, graph.edges, "right");
  if (!room) return right;
  const widest = room / SMALLEST - 2 * MARGIN;
  const narrow = (width: number) => ({ sizeOf: (node: DrawnNode) => ({ width, height: ownSize(node).height }) });
  if (!down) return right.width <= widest ? right : layOut(graph.nodes, graph.edges, "right", narrow(NARROW_ACROSS));
  const below = layOut(graph.nodes, graph.edges, "down");
  return below.width <= widest ? below : layOut(graph.nodes, graph.edges, "down", { widest, ...narrow(NARROW) });
}

export function Picture({ graph: whole, label }: { graph: Graph; label: string }) {
  const graph = useMemo(() => ({ ...whole, edges: withoutTransitiveEdges(whole.edges) }), [whole]);
  const [phone, tablet] = [usePhone(), useNarrow(TABLET_PX)];
  const picture = useRef<SVGSVGElement>(null);
  const room = useRoom(picture);
  const down = phone || isTooLong(graph.nodes, graph.edges, roomFor(tablet));
  const layout = useMemo(() => fitted(graph, room, down), [graph, room, down]);
  const frames = new Set(graph.nodes.map((node) => node.parent));
  const [width, height] = [layout.width + 2 * MARGIN, layout.height + 2 * MARGIN];
  // Where there is too little room it is drawn smaller, as far as it can be read.
  return (
    <svg ref={picture} className="flow-picture" role="img" aria-label={label} data-direction={layout.direction} viewBox={`${-MARGIN} ${-MARGIN} ${width} ${height}`} style={{ width: `min(${width}px, max(100%, ${SMALLEST * width}px))` }}>
      <defs>
        <marker id="flow-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
          <path d="M0 0 8 4 0 8z" className="flow-arrow" />
        </marker>
      </defs>
      {graph.nodes.map((node) => {
        const box = layout.boxes.get(node.id);
        if (!box) return null;
        const frame = frames.has(node.id);
        const note = [wordOf(node.kind), node.flow, node.note].filter(Boolean).join(" · ");
        return (
          <g key={node.id} transform={`translate(${box.x} ${box.y})`} className={frame ? "flow-frame" : "flow-step"} data-kind={node.kind} data-node={node.id}>
            <title>{`${node.name}: ${note}`}</title>
            <rect width={box.width} height={box.height} rx={7} />
            <text x={12} y={17} className="flow-name">
              {shortened(node.name, box.width)}
            </text>
            {!frame && (
              <text x={12} y={32} className="flow-kind">
                {shortened(note, box.width)}
              </text>
            )}
            {frame && (
              <text x={box.width - 10} y={17} textAnchor="end" className="flow-kind">
                {node.name.length * 7 + wordOf(node.kind).length * 6 + 40 < box.width ? wordOf(node.kind) : ""}
              </text>
            )}
          </g>
        );
      })}
      {graph.edges.map((edge, at) => (
        <path key={`${edge.source}>${edge.target}>${edge.kind}`} className="flow-edge" data-kind={edge.kind} data-from={edge.source} data-to={edge.target} markerEnd="url(#flow-arrow)" d={pathOf(layout.routes[at] ?? [], layout.direction)} />
      ))}
    </svg>
  );
}

function shortened(text: string, width: number): string {
  const most = Math.max(4, Math.floor((width - 24) / 6.4));
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

export function FlowDrawing({ name, version }: { name: string; version: number }) {
  const query = useQuery({
    queryKey: ["flows", name, "graph", version],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/flows/{name}/graph", { params: { path: { name } }, signal })),
    staleTime: Infinity,
  });
  return <Drawing name={name} query={query} />;
}

/** The flow that a case had, without what mended it. */
export function DrawingOfCase({ name, id }: { name: string; id: string }) {
  const query = useQuery({ ...graphQuery(id), select: withoutExlets });
  return <Drawing name={name} query={query} />;
}

function withoutExlets(graph: Graph): Graph {
  const isOwn = (id: string) => !exletOfNode(id);
  return { ...graph, nodes: graph.nodes.filter((node) => isOwn(node.id)), edges: graph.edges.filter((edge) => isOwn(edge.source) && isOwn(edge.target)) };
}

function Drawing({ name, query }: { name: string; query: UseQueryResult<Graph> }) {
  return (
    <Loaded query={query} lines={5}>
      {(graph) =>
        graph.nodes.length ? (
          <div className="flow-canvas" tabIndex={0} role="region" aria-label={`Drawing of ${name}`}>
            <Picture graph={graph} label={`${name}: ${graph.nodes.map((node) => node.name).slice(0, 30).join(", ")}`} />
            {!graph.is_whole && <p className="muted">Only a part is drawn: the flow is too large.</p>}
          </div>
        ) : (
          <EmptyState title="There is nothing to draw">The flow does nothing.</EmptyState>
        )
      }
    </Loaded>
  );
}
