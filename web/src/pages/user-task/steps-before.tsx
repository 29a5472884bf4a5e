/** What the steps before a task gave, beside the question: somebody who decides sees what it is about without opening the case. */
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { JsonTree } from "@/components/json-tree";
import { Panel } from "@/components/page";
import { Files } from "../case/files";
import { graphQuery, itemQuery, type Graph } from "../case/queries";
import "../case/case.css";

const STEPS_MAX = 6;

/** The items of the steps that lead to this one: `review[2]` is an item of the step `review`. */
export function itemsBefore(graph: Pick<Graph, "nodes" | "edges">, item: string): string[] {
  const own = graph.nodes.find((node) => node.items_sample.includes(item)) ?? graph.nodes.find((node) => node.name === item.replace(/\[.*$/, ""));
  const sources = new Set(graph.edges.filter((edge) => edge.kind !== "repair" && edge.target === own?.id).map((edge) => edge.source));
  return graph.nodes.filter((node) => sources.has(node.id)).flatMap((node) => node.items_sample).slice(0, STEPS_MAX);
}

function isThere(value: unknown): boolean {
  return value !== null && value !== undefined && (typeof value !== "object" || Object.keys(value).length > 0);
}

export function StepsBefore({ caseId, item }: { caseId: string; item: string }) {
  const graph = useQuery(graphQuery(caseId));
  const before = graph.data ? itemsBefore(graph.data, item) : [];
  const items = useQueries({ queries: before.map((each) => itemQuery(caseId, each)) });
  const gave = items.flatMap((each) => (each.data && (isThere(each.data.outputs) || isThere(each.data.files)) ? [each.data] : []));
  return gave.map((each) => (
    <section key={each.item} className="stack task-about" aria-label={`What ${each.item} gave`}>
      {isThere(each.outputs) && (
        <Panel title={<Link to="/cases/$case" params={{ case: caseId }} search={{ view: "items", item: each.item }}>What {each.item} gave</Link>}>
          <JsonTree value={each.outputs} label={`Outputs of ${each.item}`} open={1} of={caseId} />
        </Panel>
      )}
      <Files title={`Files of ${each.item}`} value={each.files} of={caseId} />
    </section>
  ));
}
