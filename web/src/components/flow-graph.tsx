/** A flow, or a case, as a graph. Loops are one node with counts; calls and exlets unfold in place. Nodes are placed anew
 * only when there are others; what changes while it runs is drawn where it stands. */
import "@xyflow/react/dist/style.css";
import { Background, BaseEdge, Controls, Handle, MarkerType, MiniMap, Position, ReactFlow, ReactFlowProvider, useReactFlow, useStore, type Edge, type EdgeProps, type Node, type NodeProps, type Viewport } from "@xyflow/react";
import { createContext, memo, useCallback, useContext, useDeferredValue, useEffect, useLayoutEffect, useMemo, useRef, useState, type MouseEvent, type RefObject } from "react";
import type { Schemas } from "@/api/client";
import { stateOf } from "@/api/states";
import { TABLET_PX, useNarrow, usePhone } from "@/app/screen-widths";
import { useTheme } from "@/app/theme";
import { pathOf, type Point } from "./flow-layout";
import { place, type Placed } from "./graph-layout";
import { CARD, firstView, isMoved, isTooLong, letPageScroll, placeNarrow, roomFor } from "./narrow-graph";
import { number } from "./format";
import { Icon } from "./icon";
import { withoutTransitiveEdges } from "./transitive-edges";
import { ErrorState, Loading } from "./states-of-page";
import { countsOf, describeWords, StateBar, StateIcon } from "./state-badge";

type GraphNode = Schemas["GraphNode"];
type Graph = Pick<Schemas["GraphView"], "nodes" | "edges">;

interface Hands {
  open: (node: GraphNode) => void;
  fold: (id: string) => void;
  selected: string | undefined;
  /** It goes from top to bottom, as where the screen is narrow. */
  down: boolean;
}

const HandsContext = createContext<Hands>({ open: () => undefined, fold: () => undefined, selected: undefined, down: false });

type Drawn = Node<{ node: GraphNode; inner: number; folded: boolean; inExlet: boolean }, "activity">;

const NARROW_WIDTH = 152;
const HEIGHT = CARD.height;
const WIDTH = CARD.width;
const FOLDED_FROM = 60;
const FIT = { maxZoom: 1.1, padding: 0.12 };
const NODE_TYPES = { activity: memo(Activity) };
const EDGE_TYPES = { routed: memo(RoutedEdge) };

interface Places {
  at: Map<string, Placed>;
  /** Of each edge, where it goes; without it, it bends from node to node. */
  routes?: Point[][];
}

/** How wide something is, from before it is painted on. */
function useWidth(place: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const { current } = place;
    if (!current) return undefined;
    const read = () => setWidth(current.clientWidth);
    const observer = new ResizeObserver(read);
    observer.observe(current);
    read();
    return () => observer.disconnect();
  }, [place]);
  return width;
}

/** Which nodes are seen, and by which node each hidden one is stood for. */
export function visible(graph: Graph, folded: ReadonlySet<string>): { nodes: GraphNode[]; standsFor: Map<string, string> } {
  const byId = new Map(graph.nodes.map((node) => [node.id, node]));
  const standsFor = new Map<string, string>();
  for (const node of graph.nodes) {
    let shown = node.id;
    for (let each = node.parent ? byId.get(node.parent) : undefined; each; each = each.parent ? byId.get(each.parent) : undefined) {
      if (folded.has(each.id)) shown = each.id;
    }
    standsFor.set(node.id, shown);
  }
  return { nodes: graph.nodes.filter((node) => standsFor.get(node.id) === node.id), standsFor };
}

export function FlowGraph(props: { graph: Graph; label: string; selected?: string; onOpen: (node: GraphNode) => void }) {
  const { graph, onOpen, selected } = props;
  const inner = useMemo(() => {
    const counted = new Map<string, number>();
    for (const node of graph.nodes) if (node.parent) counted.set(node.parent, (counted.get(node.parent) ?? 0) + 1);
    return counted;
  }, [graph]);
  const [folded, setFolded] = useState<ReadonlySet<string>>(() => new Set(graph.nodes.length > FOLDED_FROM ? [...inner.keys()] : []));
  const { dark } = useTheme();
  const [phone, tablet] = [usePhone(), useNarrow(TABLET_PX)];
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const shown = useMemo(() => visible(graph, folded), [graph, folded]);
  const lines = useMemo(() => {
    const seen = new Map<string, (typeof graph.edges)[number]>();
    for (const edge of graph.edges) {
      const source = shown.standsFor.get(edge.source);
      const target = shown.standsFor.get(edge.target);
      if (source && target && source !== target) seen.set(`${source} ${target} ${edge.kind}`, { ...edge, source, target });
    }
    return withoutTransitiveEdges([...seen.values()]);
  }, [graph, shown]);
  const structure = JSON.stringify([shown.nodes.map((node) => [node.id, node.parent]), lines.map((line) => [line.source, line.target])]);
  // It is drawn again when the screen is turned, as its frame has another width then.
  const screenPx = roomFor(tablet);
  const isLong = useMemo(() => isTooLong(shown.nodes, lines, screenPx), [structure, screenPx]);
  const down = phone || isLong;
  const [placed, setPlaced] = useState<Places | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    if (down) return undefined;
    let left = false;
    const nodes = shown.nodes.map((node) => ({ id: node.id, parent: node.parent, width: WIDTH, height: HEIGHT }));
    place(nodes, lines).then(
      (at) => !left && setPlaced({ at }),
      (failed: unknown) => !left && setError(failed),
    );
    return () => {
      left = true;
    };
    // Only another structure is placed anew.
  }, [structure, down]);
  const narrow = useMemo(() => (down && width ? placeNarrow(shown.nodes, lines, { width: NARROW_WIDTH, height: HEIGHT }, width) : null), [structure, down, width]);
  const places: Places | null = down ? narrow : placed;
  const hands = useMemo<Hands>(
    () => ({
      open: onOpen,
      selected,
      down,
      fold: (id) =>
        setFolded((before) => {
          const next = new Set(before);
          if (!next.delete(id)) next.add(id);
          return next;
        }),
    }),
    [onOpen, selected, down],
  );
  const nodes = useMemo<Drawn[]>(() => {
    if (!places) return [];
    const exlets = new Set(graph.nodes.filter((node) => node.exlet).map((node) => node.id));
    return shown.nodes.flatMap((node): Drawn[] => {
      const at = places.at.get(node.id);
      if (!at) return [];
      return [
        {
          id: node.id,
          type: "activity",
          position: { x: at.x, y: at.y },
          parentId: node.parent && places.at.has(node.parent) ? node.parent : undefined,
          width: at.width,
          height: at.height,
          data: { node, inner: inner.get(node.id) ?? 0, folded: folded.has(node.id), inExlet: exlets.has(node.parent ?? "") },
          draggable: false,
          selectable: false,
        },
      ];
    });
  }, [graph, shown, places, inner, folded]);
  const routes = places?.routes;
  const edges = useMemo<Edge[]>(
    () => lines.map((line, at) => ({ ...(routes && { type: "routed", data: { route: routes[at] } }), id: `${line.source} ${line.target} ${line.kind}`, source: line.source, target: line.target, className: line.kind, label: line.kind === "repair" ? undefined : line.note || undefined, markerEnd: { type: MarkerType.ArrowClosed, width: 14, height: 14 }, focusable: false })),
    [lines, routes],
  );
  const moved = useRef(false);
  const began = useRef<Viewport>(undefined);
  const clicked = useCallback(
    (event: MouseEvent, { data }: Drawn) => {
      // Its buttons do their own.
      if (!(event.target as HTMLElement).closest("button")) onOpen(data.node);
    },
    [onOpen],
  );
  // It has its place at once, and is drawn in small parts, between which the page answers.
  const begun = useDeferredValue(places !== null, false);
  const high = width && nodes.length ? firstView(nodes, width, selected, down).height : 0;
  const style = high ? { flex: "none", height: high } : undefined;
  if (error !== null) return <ErrorState error={error} />;
  if (!places || !begun) {
    return (
      <div ref={frame} className="case-graph" style={style}>
        <Loading lines={6} label="The graph is being placed" />
      </div>
    );
  }
  return (
    <div ref={frame} className="case-graph" role="region" aria-label={props.label} style={style}>
      <HandsContext value={hands}>
        <ReactFlowProvider>
          <ReactFlow
            key={down ? "down" : "right"}
            nodes={nodes}
            edges={edges}
            nodeTypes={NODE_TYPES}
            edgeTypes={EDGE_TYPES}
            colorMode={dark ? "dark" : "light"}
            minZoom={0.05}
            defaultMarkerColor={null}
            zoomOnScroll={false}
            preventScrolling={false}
            nodesDraggable={false}
            nodesConnectable={false}
            nodesFocusable={false}
            edgesFocusable={false}
            onlyRenderVisibleElements={nodes.length > 200}
            deleteKeyCode={null}
            onNodeClick={clicked}
            onMoveStart={(event, view) => {
              if (event) began.current = view;
            }}
            onMove={(event, view) => {
              if (event && (!began.current || isMoved(began.current, view))) moved.current = true;
            }}
          >
            <KeepInSight nodes={nodes} selected={selected} moved={moved} />
            <Background gap={22} size={1} />
            <Controls showInteractive={false} fitViewOptions={FIT} orientation="horizontal" />
            {!down && nodes.length > 25 && <MiniMap pannable zoomable />}
          </ReactFlow>
        </ReactFlowProvider>
      </HandsContext>
    </div>
  );
}

/** When the graph gets its width, or another one, because a pane opens beside it, it is shown again as at first, and so it is when
 * a repair that begins adds a box. It is as high as it has to be, and the page scrolls over it; that changes when something is
 * unfolded, and not by what runs. Whoever has moved it by hand keeps that, and only the node that is looked at is brought into sight. */
function KeepInSight({ nodes, selected, moved }: { nodes: readonly Drawn[]; selected: string | undefined; moved: RefObject<boolean> }) {
  const { down } = useContext(HandsContext);
  const width = useStore((state) => state.width);
  const { getInternalNode, getViewport, setCenter, setViewport } = useReactFlow();
  const before = useRef(0);
  const drawn = useRef("");
  const board = useStore((state) => state.domNode);
  useEffect(() => (board ? letPageScroll(board, moved) : undefined), [board, moved]);
  useLayoutEffect(() => {
    const was = before.current;
    if (!width) return;
    const { view } = firstView(nodes, width, selected, down);
    const shape = nodes.map((each) => `${each.id} ${each.position.x} ${each.position.y} ${each.width} ${each.height}`).join("\n");
    const isWide = !was || Math.abs(was - width) >= (down ? 1 : 40);
    if (drawn.current === shape && !isWide) return;
    [before.current, drawn.current] = [width, shape];
    if (!moved.current) {
      void setViewport(view);
      return;
    }
    const node = selected && !down ? getInternalNode(selected) : undefined;
    if (!node) return;
    const { x, zoom } = getViewport();
    const at = node.internals.positionAbsolute;
    const right = (at.x + (node.measured.width ?? WIDTH)) * zoom + x;
    if (right > width || at.x * zoom + x < 0) void setCenter(at.x + WIDTH / 2, at.y + HEIGHT / 2, { zoom });
  }, [down, width, nodes, selected, moved, getInternalNode, getViewport, setCenter, setViewport]);
  return null;
}

/** An edge that was given its way. */
function RoutedEdge({ data, label, markerEnd }: EdgeProps<Edge<{ route?: Point[] }>>) {
  const route = data?.route ?? [];
  const [before, last] = route.slice(-2);
  if (!before || !last) return null;
  return <BaseEdge path={pathOf(route, "down")} markerEnd={markerEnd} label={label} labelX={(before.x + last.x) / 2} labelY={(before.y + last.y) / 2} />;
}

function Activity({ data, id }: NodeProps<Drawn>) {
  const hands = useContext(HandsContext);
  const { node, inner, folded, inExlet } = data;
  const counts = countsOf(node.counts);
  const all = Object.values(counts).reduce((total, count) => total + count, 0);
  const said = describeWords(node.counts);
  const only = all > 0 && !said.includes(",") ? (all === 1 ? said.replace(/^1 /, "") : /skipped|cancelled/.test(said) ? `all ${said.replace(/^\d+ /, "")}` : "") : "";
  const state = node.state ? stateOf(node.state) : "waiting";
  const group = inner > 0 && !folded;
  const note = [node.kind === "job" ? "" : node.exlet ? "exlet" : node.kind, node.note, node.mended ? `${number(node.mended)} mended` : ""].filter(Boolean).join(" · ");
  return (
    <div className={`case-node nodrag ${group ? "group" : ""} ${hands.selected === id ? "selected" : ""}`} data-state={state} data-node={id}>
      <Handle type="target" position={hands.down ? Position.Top : Position.Left} isConnectable={false} />
      <span className="case-node-head">
        {!(inExlet && all === 0) && <StateIcon state={state} size={14} />}
        <button type="button" className="link-button clip case-node-name" aria-label={`${node.name}: ${said}`} title={node.name} onClick={() => hands.open(node)}>
          {node.name}
        </button>
        {inner > 0 && (
          <button type="button" className="icon-button case-fold" aria-expanded={!folded} aria-label={folded ? `Unfold ${node.name}` : `Fold ${node.name}`} onClick={() => hands.fold(id)}>
            <Icon name={folded ? "plus" : "minus"} size={12} />
          </button>
        )}
      </span>
      {!group && all > 1 && (
        <span className="case-progress">
          <StateBar counts={counts} label={node.name} words={said} />
          <span className="muted number">{number(all)}</span>
        </span>
      )}
      {group && note && <span className="case-node-note clip" title={note}>{note}</span>}
      {!group && <span className="case-node-note clip">{[only, all === 0 && !inExlet && "not begun", note, folded && inner ? `${inner} inside` : ""].filter(Boolean).join(" · ")}</span>}
      <Handle type="source" position={hands.down ? Position.Bottom : Position.Right} isConnectable={false} />
    </div>
  );
}
