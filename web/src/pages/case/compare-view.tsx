import { useQueries, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { caseDecisionsQuery, caseQuery, type CaseView, type ItemView } from "@/api/queries";
import { Field } from "@/components/field";
import { JsonTree } from "@/components/json-tree";
import { Panel } from "@/components/page";
import { EmptyState, Loaded, Loading } from "@/components/states-of-page";
import { itemText } from "@/components/item-text";
import { cameOf } from "@/components/recovery/decision-words";
import { CandidateList, useCandidates } from "./compared-with";
import { failedRows } from "./failed-rows";
import { repairsOf } from "./item-repairs";
import { jobDifferences } from "./job-differences";

type Difference = Schemas["ValueDifference"];

const route = getRouteApi("/cases/$case");

/** This case beside another: differences only. Unless another is chosen, it is the one that it runs again, or the last of its flow
 * that completed. */
export default function CompareView({ view }: { view: CaseView }) {
  const { with: wanted } = route.useSearch();
  const navigate = route.useNavigate();
  const candidates = useCandidates(view);
  const other = wanted ?? view.rerun_of ?? candidates.good?.id;
  const [typed, setTyped] = useState("");
  const choose = (id: string) => void navigate({ search: (before) => ({ ...before, with: id || undefined }) });
  return (
    <div className="case-scroll">
      <CandidateList of={candidates} chosen={other} view={view} onChoose={choose} />
      <form
        className="toolbar compare-bar"
        onSubmit={(event) => {
          event.preventDefault();
          choose(typed.trim());
        }}
      >
        <Field label="Or with another case">{(ids) => <input {...ids} placeholder="a case's id" value={typed} onChange={(event) => setTyped(event.target.value)} />}</Field>
        <button type="submit" className="button" disabled={!typed.trim()}>
          Compare
        </button>
      </form>
      {other && other !== view.id && <Compared view={view} right={other} />}
      {!other && !candidates.known && <Loading lines={4} />}
      {!other && candidates.known && <EmptyState title="Pick the other case" icon="compare">Cases of the same flow are offered, and any other by its id. Only what differs is shown.</EmptyState>}
    </div>
  );
}

function Compared({ view, right }: { view: CaseView; right: string }) {
  const left = view.id;
  const other = useQuery(caseQuery(right)).data;
  const query = useQuery({
    queryKey: ["case", left, "compare", right],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/cases/{case}/compare", { params: { path: { case: left }, query: { with: right } }, signal })),
  });
  return (
    <Loaded query={query}>
      {(found) => {
        const same = !found.flow_changed && !found.inputs.length && !found.jobs.length && !found.outputs.length;
        if (same)
          return (
            <>
              <EmptyState title="They do not differ" icon="check">Same flow, inputs, jobs and outputs.</EmptyState>
              <Mended cases={[left, right]} />
            </>
          );
        return (
          <>
            <Mended cases={[left, right]} />
            <Failed left={left} right={right} />
            {found.flow_changed && (
              <p>
                The flow has changed between them: its file for <FileLink case={left} />, and for <FileLink case={right} />.
              </p>
            )}
            <Differences title="Inputs" left={left} right={right} rows={found.inputs} missing="not given" beside={(path, side) => isDefault(path, side === "left" ? view : other) && <span className="chip" title="Nobody gave it: it is the default of the flow">default</span>} />
            <Differences title="Outputs" left={left} right={right} rows={found.outputs} missing="not there" />
            <Jobs left={left} right={right} jobs={found.jobs} />
          </>
        );
      }}
    </Loaded>
  );
}

function FileLink(props: { case: string }) {
  return (
    <Link to="/cases/$case" params={props} search={{ view: "file" }}>
      {props.case}
    </Link>
  );
}

/** Whether a value of the inputs is what the flow has, as nobody gave it. */
function isDefault(path: string, view: CaseView | undefined): boolean {
  return view !== undefined && !Object.hasOwn(view.inputs, /^[^.[]*/.exec(path)?.[0] ?? "");
}

function Jobs({ left, right, jobs }: { left: string; right: string; jobs: readonly Schemas["JobDifference"][] }) {
  const told = jobs.map((job) => ({ name: job.name, lines: jobDifferences(job) })).filter((job) => job.lines.length > 0);
  if (!told.length) return null;
  return (
    <Panel title="Jobs">
      <table className="differences">
        <thead>
          <Heads left={left} right={right} first="Job" />
        </thead>
        <tbody>
          {told.flatMap((job) =>
            job.lines.map((line, at) => (
              <tr key={`${job.name} ${line.name}`}>
                <td>
                  {at === 0 && <strong>{job.name} </strong>}
                  <span className="muted">{line.name}</span>
                </td>
                {[line.left, line.right].map((text, side) => (
                  <td key={side} className={line.isCode ? "mono" : undefined}>{text}</td>
                ))}
              </tr>
            )),
          )}
        </tbody>
      </table>
    </Panel>
  );
}

const FAILED_SHOWN = 20;

/** Which items failed on each side, and by what: most who compare look for that. */
function Failed({ left, right }: { left: string; right: string }) {
  const found = useQueries({ queries: [left, right].map((id) => failedItemsQuery(id)) }).map((each) => each.data ?? []);
  if (!found.some((each) => each.length)) return null;
  const shown = found.map((items) => items.slice(0, FAILED_SHOWN));
  return (
    <Panel title="What failed">
      <table className="differences">
        <thead>
          <Heads left={left} right={right} />
        </thead>
        <tbody>
          {failedRows(shown[0] ?? [], shown[1] ?? []).map((sides, row) => (
            <tr key={(sides[0] ?? sides[1])?.item}>
              {sides.map((item, side) => (
                <td key={side} className="running-text">{item ? <FailedItem item={item} /> : row === 0 && !found[side]?.length && <span className="muted">nothing</span>}</td>
              ))}
            </tr>
          ))}
          {found.some((items) => items.length > FAILED_SHOWN) && (
            <tr>
              {found.map((items, side) => (
                <td key={side}>{items.length > FAILED_SHOWN && <Link to="/cases/$case" params={{ case: side ? right : left }} search={{ view: "items", state: "failed" }}>and more: all that failed</Link>}</td>
              ))}
            </tr>
          )}
        </tbody>
      </table>
    </Panel>
  );
}

function FailedItem({ item }: { item: ItemView }) {
  return (
    <>
      <Link to="/cases/$case" params={{ case: item.case }} search={{ view: "items", item: item.item }}>{itemText(item)}</Link>: {item.fault?.message ?? "it failed"}
    </>
  );
}

function failedItemsQuery(id: string) {
  return {
    queryKey: ["case", id, "failed-items"],
    queryFn: ({ signal }: { signal: AbortSignal }) => ask(api.GET("/api/v1/cases/{case}/items", { params: { path: { case: id }, query: { state: "failed" as const, limit: FAILED_SHOWN + 1 } }, signal })),
  };
}

function Heads({ left, right, first }: { left: string; right: string; first?: string }) {
  return (
    <tr>
      {first && <th scope="col">{first}</th>}
      {[left, right].map((id) => (
        <th key={id} scope="col">
          <Link to="/cases/$case" params={{ case: id }}>
            {id}
          </Link>
        </th>
      ))}
    </tr>
  );
}

interface DifferencesProps {
  title: string;
  left: string;
  right: string;
  rows: Difference[];
  missing: string;
  beside?: (path: string, side: "left" | "right") => ReactNode;
}

function Differences({ rows, missing, beside, ...props }: DifferencesProps) {
  if (!rows.length) return null;
  return (
    <Panel title={props.title}>
      <table className="differences">
        <thead>
          <Heads left={props.left} right={props.right} first="Value" />
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.path}>
              <td className="mono">{row.path}</td>
              {(["left", "right"] as const).map((side) => (
                <td key={side}>
                  {row.only && row.only !== side ? <span className="muted">{missing}</span> : <JsonTree value={row[side]} open={1} of={props[side]} />}
                  {!(row.only && row.only !== side) && beside?.(row.path, side)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

/** What repairs had to do with each of them: a result that a repair has made may look like any other. */
function Mended({ cases }: { cases: readonly string[] }) {
  const repairs = useQueries({ queries: cases.map((id) => caseDecisionsQuery(id)), combine: (all) => all.map((each) => repairsOf(each.data ?? [])) });
  if (repairs.every((each) => !each.length)) return null;
  return (
    <ul className="rows" aria-label="What was mended">
      {cases.map((id, side) => (
        <li key={id} className="panel-note">
          {id}: {repairs[side]?.length ? repairs[side].map((each) => `${itemText({ item: each.item ?? "", element: each.element })}: ${each.exlet}, ${cameOf(each)}`).join("; ") : "nothing was mended"}
        </li>
      ))}
    </ul>
  );
}
