/** A flow as it will run, drawn before anything does: steps from left to right, what belongs together in a frame. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { layOut } from "@/components/flow-layout";
import { EmptyState, Loaded } from "@/components/states-of-page";

type Graph = Schemas["GraphView"];

const SMALLEST = 0.6;
const KIND_WORDS: Record<string, string> = { job: "job", "for-each": "for each", "user-task": "a person", call: "flow", stage: "files", receive: "waits for a message", invoke: "asks a partner", wait: "waits", choose: "one of", parallel: "at once", scope: "scope", while: "while", until: "until", pick: "first of", assign: "values", throw: "fails" };

function wordOf(kind: string): string {
  return KIND_WORDS[kind] ?? kind;
}

export function Picture({ graph, label }: { graph: Graph; label: string }) {
  const layout = useMemo(() => layOut(graph.nodes, graph.edges), [graph]);
  const frames = new Set(graph.nodes.map((node) => node.parent));
  const margin = 14;
  const [width, height] = [layout.width + 2 * margin, layout.height + 2 * margin];
  // Where there is too little room it is drawn smaller, as far as it can be read.
  return (
    <svg className="flow-picture" role="img" aria-label={label} viewBox={`${-margin} ${-margin} ${width} ${height}`} style={{ width: `min(${width}px, max(100%, ${SMALLEST * width}px))` }}>
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
          <g key={node.id} transform={`translate(${box.x} ${box.y})`} className={frame ? "flow-frame" : "flow-step"} data-kind={node.kind}>
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
      {graph.edges.map((edge) => {
        const from = layout.boxes.get(edge.source);
        const to = layout.boxes.get(edge.target);
        if (!from || !to) return null;
        const x1 = from.x + from.width;
        const y1 = from.y + from.height / 2;
        const y2 = to.y + to.height / 2;
        const bend = Math.max(18, (to.x - x1) / 2);
        return <path key={`${edge.source}>${edge.target}>${edge.kind}`} className="flow-edge" data-kind={edge.kind} markerEnd="url(#flow-arrow)" d={`M${x1} ${y1}C${x1 + bend} ${y1} ${to.x - bend} ${y2} ${to.x - 1} ${y2}`} />;
      })}
    </svg>
  );
}

function shortened(text: string, width: number): string {
  const most = Math.max(4, Math.floor((width - 24) / 6.4));
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

export function FlowDrawing({ name, version, tall }: { name: string; version: number; tall?: boolean }) {
  const query = useQuery({
    queryKey: ["flows", name, "graph", version],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/flows/{name}/graph", { params: { path: { name } }, signal })),
    staleTime: Infinity,
  });
  return (
    <Loaded query={query} lines={5}>
      {(graph) =>
        graph.nodes.length ? (
          <div className={tall ? "flow-canvas tall" : "flow-canvas"} tabIndex={0} role="region" aria-label={`Drawing of ${name}`}>
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
