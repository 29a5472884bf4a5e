import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { ApiError } from "@/api/errors";
import type { ItemView } from "@/api/queries";
import { DetailsPane } from "@/components/drawer";
import { bytes, duration, plural } from "@/components/format";
import { elementOf } from "@/components/item-text";
import { JsonTree } from "@/components/json-tree";
import { LogView } from "@/components/log-view";
import { Facts, Panel } from "@/components/page";
import { ErrorState, Loaded } from "@/components/states-of-page";
import { StateBadge } from "@/components/state-badge";
import { Time } from "@/components/time";
import { Why } from "@/components/why";
import { AskedTask, isAsked, ItemState } from "./asked-task";
import { Files } from "./files";
import { Asked, FailedItemActs, HeldItemActs, ItemActs } from "./item-acts";
import type { Job } from "../jobs/needs";
import { itemQuery, jobQuery, readLog } from "./queries";
import { AttemptRan, Ran, triesOf } from "./ran";
import { ItemRepairs } from "./item-repairs";

/** One item: why it is as it is, what it printed, what it asked for and used, what it made. */
export default function ItemDetails({ caseId, item, onClose }: { caseId: string; item: string; onClose: () => void }) {
  const query = useQuery(itemQuery(caseId, item));
  return (
    <DetailsPane label={`Item ${item}`} title={item} onClose={onClose} actions={query.data && <ItemActs view={query.data} />}>
      <Loaded query={query}>{(view) => <ItemParts view={view} />}</Loaded>
    </DetailsPane>
  );
}

function ItemParts({ view }: { view: ItemView }) {
  const hasOutputs = view.outputs !== null && (typeof view.outputs !== "object" || Object.keys(view.outputs as object).length > 0);
  return (
    <>
      <Why subject={`${view.case}:${view.item}`} />
      <FailedItemActs view={view} />
      <HeldItemActs view={view} />
      <Facts
        facts={[
          ["State", <ItemState key="state" item={view} />],
          ["Task", isAsked(view) && <AskedTask key="task" item={view} />],
          ["For", elementOf(view)],
          ["Kind", view.kind],
          ["Pilot", view.pilot ?? view.attempts.at(-1)?.pilot],
          ["Began", <Time key="began" at={view.created_at} />],
          ["Took", <Ran key="took" item={view} />],
          ["Fault", view.fault && `${view.fault.name} (${view.fault.category})`],
          ["From cache", view.cached_from && <MadeBy key="from" job={view.cached_from} />],
          ["Cache", view.cache_reason],
          ["Left running", view.left_running],
        ]}
      />
      <ItemRepairs caseId={view.case} item={view.item} job={view.job} />
      {view.job && <JobLog key={view.job} job={view.job} view={view} />}
      {view.job && <Asked job={view.job} view={view} />}
      {view.attempts.length > 0 && <Attempts view={view} />}
      {view.command && (
        <Panel title="Command">
          <pre>{view.command}</pre>
        </Panel>
      )}
      {hasOutputs && (
        <Panel title="Outputs">
          <JsonTree value={view.outputs} label="Outputs" of={view.case} />
        </Panel>
      )}
      {Object.keys(view.files).length > 0 && <Files title="Files" value={view.files} of={view.case} />}
      {view.earlier_runs.length > 0 && (
        <Panel title="Earlier runs">
          <ul className="stack tight">
            {view.earlier_runs.map((run) => (
              <li key={run.serial}>
                <StateBadge of={run.state} /> {plural(run.attempts, "attempt")}, {run.fault?.message}
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  );
}

/** The job that made a result which was taken over, on the page of its case. */
function MadeBy({ job }: { job: string }) {
  const id = job.slice(0, job.lastIndexOf("/"));
  const made = useQuery(jobQuery(job)).data as Job | undefined;
  return <Link to="/cases/$case" params={{ case: id }} search={made ? { view: "items", item: made.spec.item } : {}}>{job}</Link>;
}

function Attempts({ view }: { view: ItemView }) {
  return (
    <Panel title={plural(triesOf(view), "attempt")}>
      <table className="attempts">
        <thead>
          <tr>
            <th scope="col">#</th>
            <th scope="col">Ended</th>
            <th scope="col">Where</th>
            <th scope="col">Queued</th>
            <th scope="col">Ran</th>
            <th scope="col">CPU</th>
            <th scope="col">Memory</th>
            <th scope="col">Staged</th>
          </tr>
        </thead>
        <tbody>
          {view.attempts.map((each, at) => (
            <tr key={at}>
              <td>{each.number}</td>
              <td>
                {each.end === "returned" ? "not begun, given back" : each.end || "running"}
                {each.fault && <div className="muted">{each.fault.message}</div>}
              </td>
              <td>{each.host || each.pilot}</td>
              <td data-label="Queued">{each.started_at ? duration(each.started_at - (at ? (view.attempts[at - 1]?.ended_at ?? each.granted_at) : view.created_at)) : ""}</td>
              <td data-label="Ran"><AttemptRan attempt={each} /></td>
              <td data-label="CPU">{each.cpu_ms ? duration(each.cpu_ms) : ""}</td>
              <td data-label="Memory">{each.peak_bytes ? bytes(each.peak_bytes) : ""}</td>
              <td data-label="Staged">{each.stage_in_ms + each.stage_out_ms ? duration(each.stage_in_ms + each.stage_out_ms) : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

const AGAIN_MS = 1000;

/** The log of an attempt, read on from where it ended until it is over. */
function useLog(job: string, attempt: number) {
  const [log, setLog] = useState<{ text: string; over: boolean; note: string; skipped: boolean }>({ text: "", over: false, note: "", skipped: false });
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const stop = new AbortController();
    let text = "";
    let offset = 0;
    let skipped = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      try {
        const part = await readLog(job, attempt, offset, stop.signal);
        skipped ||= part.offset > offset;
        text += part.text;
        offset = part.next;
        setLog({ text, over: part.over, note: part.note, skipped });
        setError(null);
        if (part.over && offset >= part.size) return;
        timer = setTimeout(() => void read(), part.text && offset < part.size ? 0 : AGAIN_MS);
      } catch (refused) {
        if (stop.signal.aborted) return;
        setError(refused);
        if (refused instanceof ApiError && (refused.status === 0 || refused.status >= 500)) timer = setTimeout(() => void read(), 3 * AGAIN_MS);
      }
    };
    void read();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [job, attempt]);
  return { log, error };
}

/** By what an attempt failed, or the last one; empty if that is not told. Nothing of one that ended well, or has not ended. */
export function failureOf(view: Pick<ItemView, "state" | "fault" | "attempts">, attempt: number): string | undefined {
  const of = attempt ? view.attempts.findLast((each) => each.number === attempt) : view.attempts.at(-1);
  const isLast = of === view.attempts.at(-1);
  if (of?.fault) return of.fault.message;
  return isLast && view.state === "failed" ? (view.fault?.message ?? "") : undefined;
}

function JobLog({ job, view }: { job: string; view: ItemView }) {
  const attempts = triesOf(view);
  const endedWell = view.state === "completed" || view.state === "cached";
  const route = getRouteApi("/cases/$case");
  const { line } = route.useSearch();
  const navigate = route.useNavigate();
  const [attempt, setAttempt] = useState(0);
  const { log, error } = useLog(job, attempt);
  return (
    <Panel
      title="Log"
      className="flush"
      actions={
        attempts > 1 && (
          <select aria-label="Attempt" value={attempt} onChange={(event) => setAttempt(Number(event.target.value))}>
            <option value={0}>last attempt</option>
            {Array.from({ length: attempts }, (_, at) => (
              <option key={at} value={at + 1}>
                attempt {at + 1}
              </option>
            ))}
          </select>
        )
      }
    >
      {error !== null && <ErrorState error={error} compact />}
      {log.text ? (
        <div className="item-log">
          <LogView key={attempt} text={log.text} label={`Log of ${job}`} line={line} well={endedWell && (attempt === 0 || attempt === attempts)} live={!log.over} failure={failureOf(view, attempt)} onLine={(at) => void navigate({ search: (before) => ({ ...before, line: at }), replace: true })} />
        </div>
      ) : (
        error === null && <p className="panel-note muted">{log.note || (log.over ? "It printed nothing." : "Nothing printed yet.")}</p>
      )}
      {log.skipped && <p className="panel-note muted">The log is longer than what is kept of it: a part was left out.</p>}
    </Panel>
  );
}
