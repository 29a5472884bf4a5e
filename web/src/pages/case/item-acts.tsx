/** What can be done with one item, and what its job asks for beside what it used. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, ask } from "@/api/client";
import { caseQuery, whyQuery, type ItemView } from "@/api/queries";
import { useMayAll } from "@/api/session";
import { ActionRow } from "@/components/action-buttons";
import { toCause, toMending, toTeaching, tryItemAgain } from "@/components/actions";
import { useQuestion } from "@/components/acts";
import { CaseActDialog } from "@/components/case-act-dialog";
import { CASE_ACTS, labelFor, type CaseAct } from "@/components/case-acts";
import { bytes, duration, percent, plural } from "@/components/format";
import { Menu, type MenuAct } from "@/components/menu";
import { Facts, Panel } from "@/components/page";
import type { Job } from "../jobs/needs";
import { jobQuery } from "./queries";
import { attemptMs } from "./ran";

const LIVE = ["waiting", "staging", "running"];

export function ItemActs({ view }: { view: ItemView }) {
  const may = useMayAll();
  const [question, askFirst] = useQuestion("case", "cases", "jobs");
  const { case: id, item, state } = view;
  const path = { params: { path: { case: id } } };
  const live = LIVE.includes(state);
  const acts: (MenuAct & { needs: string; fits: boolean })[] = [
    {
      id: "suspend",
      needs: "suspend",
      fits: live && !view.held,
      label: "Suspend",
      hint: "It stops where it is, and goes on when somebody resumes it. Other items go on.",
      run: () => askFirst({ title: `Suspend ${item}`, will: "It stops where it is, and goes on when somebody resumes it. Other items go on; what needs this one waits.", act: "Suspend", done: `${item} is suspended`, onAct: () => ask(api.POST("/api/v1/cases/{case}/suspend", { ...path, body: { item } })) }),
    },
    {
      id: "resume",
      needs: "resume",
      fits: state === "suspended",
      label: "Resume",
      hint: "It goes on.",
      run: () => askFirst({ title: `Resume ${item}`, will: "It goes on from where it was suspended.", act: "Resume", done: `${item} goes on`, onAct: () => ask(api.POST("/api/v1/cases/{case}/resume", { ...path, body: { item } })) }),
    },
    {
      id: "cancel",
      needs: "cancel",
      fits: live || state === "suspended",
      label: "Cancel",
      danger: true,
      hint: state === "running" && !view.held ? "Its job is killed. What needs it does not run." : "It ends as cancelled. What needs it does not run.",
      run: () => askFirst({ title: `Cancel ${item}`, will: `${view.held ? "It" : "Its job is killed if it runs, and it"} ends as cancelled. What needs it does not run; other items go on. This cannot be taken back.`, act: "Cancel the item", danger: true, done: `${item} is cancelled`, onAct: () => ask(api.POST("/api/v1/cases/{case}/cancel", { ...path, body: { item } })) }),
    },
  ];
  const offered = acts.filter((act) => act.fits && may(act.needs));
  return (
    <>
      {offered.length > 0 && <Menu label={`Acts on ${item}`} className="button small" acts={offered} />}
      {question}
    </>
  );
}

/** What can be done about an item that has failed, and that its case goes on without: only what the server will do. */
export function FailedItemActs({ view }: { view: ItemView }) {
  const may = useMayAll();
  const navigate = useNavigate();
  const [act, setAct] = useState<CaseAct | null>(null);
  const { case: id, item } = view;
  const failed = view.state === "failed" && !view.held;
  const of = useQuery({ ...caseQuery(id), enabled: failed }).data;
  const failure = useQuery({ ...whyQuery(`${id}:${item}`), enabled: failed }).data?.repairs?.find((each) => each.group);
  const group = failure?.group;
  if (!failed || !of) return null;
  const again = CASE_ACTS.find((each) => each.name === "rerun-failed" && may(each.operation) && each.fits(of));
  return (
    <div className="row wrap" role="group" aria-label={`What can be done about ${item}`}>
      {again && (
        <button type="button" className="button small" onClick={() => setAct(again)}>
          {labelFor(again, of)}
        </button>
      )}
      {group && may("add_rule") && (
        <Link to="/failures/$group/teach" params={{ group }} className="button small">
          Teach for the next time
        </Link>
      )}
      {group && (
        <Link to="/failures/$group" params={{ group }} search={{ decision: failure?.id }} className="button small">
          Its cause in Failures
        </Link>
      )}
      {!of.ended_at && <span className="muted">The case goes on without it; once it is over, what failed can be run again.</span>}
      <CaseActDialog act={act} cases={[of]} onClose={() => setAct(null)} onDone={(made) => made[0] && void navigate({ to: "/cases/$case", params: { case: made[0] }, search: {} })} />
    </div>
  );
}

/** What can be done about an item that failed, and that waits for a person. */
export function HeldItemActs({ view }: { view: ItemView }) {
  const repairs = useQuery({ ...whyQuery(`${view.case}:${view.item}`), enabled: view.held }).data?.repairs;
  const waits = repairs?.find((each) => each.state === "waiting" && each.group);
  if (!view.held || !waits?.group) return null;
  return (
    <ActionRow
      label={`What can be done about ${view.item}`}
      actions={[...(waits.type === "abort" ? [tryItemAgain(view.case, view.item)] : []), toMending(waits.group, waits.id), toTeaching(waits.group), toCause(waits.group, undefined, waits.id)]}
    />
  );
}

/** `used of asked`, so that one sees at once what was too little or too much. */
function besides(asked: string, used: string, share: string): string {
  return used ? `${asked || "not said"}; used ${used}${share ? `, ${share}` : ""}` : asked;
}

export function Asked({ job, view }: { job: string; view: ItemView }) {
  const found = useQuery(jobQuery(job)).data as Job | undefined;
  if (!found) return null;
  const { cpus = 1, memory_bytes: memory = 0, disk_bytes: disk = 0, gpus = 0, wall_ms: wall = 0, site = "", memory_auto: learned = false } = found.spec.resources ?? {};
  const last = view.attempts.findLast((each) => each.started_at);
  const ran = last ? (attemptMs(last, Date.now()) ?? 0) : 0;
  const named = found.spec.limits?.named ?? [];
  return (
    <Panel title="Asked for and used">
      <Facts
        facts={[
          ["CPUs", besides(plural(cpus, "CPU"), last?.cpu_ms && ran ? `${(last.cpu_ms / ran).toFixed(2)} on average` : "", "")],
          ["Memory", besides(memory ? `${bytes(memory)}${learned ? ", as learned" : ""}` : "", last?.peak_bytes ? bytes(last.peak_bytes) : "", memory && last?.peak_bytes ? percent(last.peak_bytes, memory) : "")],
          ["Time", wall ? besides(duration(wall), ran ? duration(ran) : "", percent(ran, wall)) : null],
          ["Disk", disk ? bytes(disk) : null],
          ["GPUs", gpus || null],
          ["Site", site],
          ["Limits", named.map(([name, count]) => `${count} of ${name}`).join(", ")],
        ]}
      />
    </Panel>
  );
}
