import { useInfiniteQuery, useQueries, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { casesQuery, type CaseView } from "@/api/queries";
import { Field } from "@/components/field";
import { JsonTree } from "@/components/json-tree";
import { Panel } from "@/components/page";
import { stateOf } from "@/api/states";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { StateIcon } from "@/components/state-badge";

type Difference = Schemas["ValueDifference"];

const route = getRouteApi("/cases/$case");

/** This case beside another: differences only. */
export default function CompareView({ view }: { view: CaseView }) {
  const { with: other } = route.useSearch();
  const navigate = route.useNavigate();
  const [typed, setTyped] = useState(other ?? view.rerun_of ?? "");
  const near = useInfiniteQuery(casesQuery({ where: `flow == '${view.flow.replaceAll("'", "\\'")}' && id != '${view.id}'` })).data?.pages[0]?.data.slice(0, 8) ?? [];
  const choose = (id: string) => void navigate({ search: (before) => ({ ...before, with: id || undefined }) });
  return (
    <div className="case-scroll">
      <form
        className="toolbar compare-bar"
        onSubmit={(event) => {
          event.preventDefault();
          choose(typed.trim());
        }}
      >
        <Field label="Compare with">{(ids) => <input {...ids} list="near-cases" placeholder="a case's id" value={typed} onChange={(event) => setTyped(event.target.value)} />}</Field>
        <datalist id="near-cases">
          {near.map((each) => (
            <option key={each.id} value={each.id}>
              {each.status}
            </option>
          ))}
        </datalist>
        <button type="submit" className="button primary" disabled={!typed.trim()}>
          Compare
        </button>
        {near.map((each) => (
          <button key={each.id} type="button" className="chip" onClick={() => choose(each.id)}>
            <StateIcon state={stateOf(each.status)} /> {each.id}
          </button>
        ))}
      </form>
      {other && other !== view.id ? <Compared left={view.id} right={other} /> : <EmptyState title="Pick the other case" icon="compare">Cases of the same flow are offered. Only what differs is shown.</EmptyState>}
    </div>
  );
}

function Compared({ left, right }: { left: string; right: string }) {
  const query = useQuery({
    queryKey: ["case", left, "compare", right],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/cases/{case}/compare", { params: { path: { case: left }, query: { with: right } }, signal })),
  });
  return (
    <Loaded query={query}>
      {(found) => {
        const same = !found.flow_changed && !found.inputs.length && !found.jobs.length && !found.outputs.length;
        if (same) return <EmptyState title="They do not differ" icon="check">Same flow, inputs, jobs and outputs.</EmptyState>;
        return (
          <>
            <Failed left={left} right={right} />
            {found.flow_changed && <p>The flow has changed between them.</p>}
            <Differences title="Inputs" left={left} right={right} rows={found.inputs} />
            <Differences title="Outputs" left={left} right={right} rows={found.outputs} />
            {found.jobs.length > 0 && (
              <Panel title="Jobs">
                <table className="differences">
                  <thead>
                    <Heads left={left} right={right} first="Job" />
                  </thead>
                  <tbody>
                    {found.jobs.map((job) => (
                      <tr key={job.name}>
                        <td>
                          {job.name}
                          <div className="muted">{job.differences.join(", ")}</div>
                        </td>
                        <td>{job.left ? <JsonTree value={differing(job.left, job.right)} open={1} /> : <Missing />}</td>
                        <td>{job.right ? <JsonTree value={differing(job.right, job.left)} open={1} /> : <Missing />}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </Panel>
            )}
          </>
        );
      }}
    </Loaded>
  );
}

function Missing() {
  return <span className="muted">is not there</span>;
}

/** What of one side the other has otherwise; all that says something where the other has nothing. */
export function differing(side: object, other: object | null | undefined): unknown {
  if (!other) return Object.fromEntries(Object.entries(side).filter(([, value]) => value !== "" && value !== null));
  const there = other as Record<string, unknown>;
  return Object.fromEntries(Object.entries(side).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(there[name])));
}

const FAILED_SHOWN = 20;

/** Which items failed on each side, and by what: most who compare look for that. */
function Failed({ left, right }: { left: string; right: string }) {
  const found = useQueries({ queries: [left, right].map((id) => failedItemsQuery(id)) }).map((each) => each.data ?? []);
  if (!found.some((each) => each.length)) return null;
  return (
    <Panel title="What failed">
      <table className="differences">
        <thead>
          <Heads left={left} right={right} first="What failed" />
        </thead>
        <tbody>
          <tr>
            <td />
            {found.map((items, at) => (
              <td key={at}>
                {items.length === 0 && <span className="muted">nothing</span>}
                <ul className="plain-list">
                  {items.slice(0, FAILED_SHOWN).map((item) => (
                    <li key={item.item}>
                      <Link to="/cases/$case" params={{ case: item.case }} search={{ view: "items", item: item.item }}>{item.item}</Link>: {item.fault?.message ?? "it failed"}
                    </li>
                  ))}
                </ul>
                {items.length > FAILED_SHOWN && <span className="muted">and more</span>}
              </td>
            ))}
          </tr>
        </tbody>
      </table>
    </Panel>
  );
}

function failedItemsQuery(id: string) {
  return {
    queryKey: ["case", id, "failed-items"],
    queryFn: ({ signal }: { signal: AbortSignal }) => ask(api.GET("/api/v1/cases/{case}/items", { params: { path: { case: id }, query: { state: "failed" as const, limit: FAILED_SHOWN + 1 } }, signal })),
  };
}

function Heads({ left, right, first }: { left: string; right: string; first: string }) {
  return (
    <tr>
      <th scope="col">{first}</th>
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

function Differences(props: { title: string; left: string; right: string; rows: Difference[] }) {
  if (!props.rows.length) return null;
  return (
    <Panel title={props.title}>
      <table className="differences">
        <thead>
          <Heads left={props.left} right={props.right} first="Value" />
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={row.path}>
              <td className="mono">{row.path}</td>
              <td>{row.only === "right" ? <Missing /> : <JsonTree value={row.left} open={1} of={props.left} />}</td>
              <td>{row.only === "left" ? <Missing /> : <JsonTree value={row.right} open={1} of={props.right} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}
