import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import { FlowGraph } from "@/components/flow-graph";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { StateLegend } from "@/components/state-badge";
import { exletOfNode, graphQuery, type GraphNode } from "./queries";

const route = getRouteApi("/cases/$case");

export default function GraphView({ id }: { id: string }) {
  const { node, item } = route.useSearch();
  const go = useNavigate();
  const query = useQuery(graphQuery(id));
  const open = useCallback(
    (picked: GraphNode) => {
      const repair = exletOfNode(picked.id); // a step of it opens it, too
      if (repair) {
        void go({ to: "/cases/$case", params: { case: id }, search: { view: "graph", node: `exlet:${repair.task}:${repair.exlet}` } });
        return;
      }
      const [only] = picked.items_sample;
      const several = Object.values(picked.counts).reduce((total, count) => total + count, 0) > 1;
      if (picked.cases[0] && picked.items_sample.length === 0) void go({ to: "/cases/$case", params: { case: picked.cases[0] }, search: {} });
      else if (several) void go({ to: "/cases/$case", params: { case: id }, search: { view: "items", name: picked.name } });
      else void go({ to: "/cases/$case", params: { case: id }, search: { view: "graph", node: picked.id, item: only } });
    },
    [go, id],
  );
  return (
    <div className="timeline">
      <Loaded query={query} lines={6}>
        {(graph) =>
          graph.nodes.length ? (
            <>
              <FlowGraph graph={graph} label={`Graph of ${id}`} selected={node ?? item} onOpen={open} />
              <StateLegend />
            </>
          ) : (
            <EmptyState title="There is nothing to draw" />
          )
        }
      </Loaded>
    </div>
  );
}
