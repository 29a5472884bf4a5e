/** The numbers on top: each leads to exactly what it counts. */
import { useQuery } from "@tanstack/react-query";
import { Link, type LinkProps } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { number, plural } from "@/components/format";
import { Sparkline } from "@/components/sparkline";
import { StateIcon } from "@/components/state-badge";
import { runningForPersonQuery } from "@/api/queries";
import type { State } from "@/api/states";
import { fieldTime } from "@/components/time-spans";
import type { Overview } from "./page";

function Tile(props: { state: State; title: string; count: number; link: LinkProps; note: ReactNode; hint?: string; children?: ReactNode }) {
  return (
    <Link {...props.link} className="tile panel" title={props.hint || undefined}>
      <span className="tile-title">
        <StateIcon state={props.state} />
        {props.title}
      </span>
      <span className="tile-main">
        <span className="tile-count">{number(props.count)}</span>
        {props.children}
      </span>
      <span className="tile-note muted">{props.note}</span>
    </Link>
  );
}

const span = "in the last 24 hours";
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** Below the number of those that run, which those that wait for a person are not in: they run no less, and were started, too. */
export function runningNote(started: number, forPerson: number): string {
  return `${forPerson ? `and ${plural(forPerson, "that waits", "that wait")} for a person; ` : ""}${plural(started, "case")} started ${span}`;
}

export function Tiles({ overview }: { overview: Overview }) {
  const { cases, jobs, per_hour: hours } = overview;
  const inADay = { ended: "between" as const, endedFrom: fieldTime(overview.since) };
  const tasks = overview.waiting.filter((each) => each.kind === "user-task").reduce((total, each) => total + each.jobs, 0);
  const people = overview.waiting.filter((each) => each.kind === "user-task" || each.kind === "person").reduce((total, each) => total + each.jobs, 0);
  const waiting = Object.entries(jobs).reduce((total, [state, count]) => (state === "running" ? total : total + count), 0);
  // What cases called, and what mends them, is not counted with them, and the list shows it only if it is asked for.
  const besides = (status: string) => (overview.inner[status] ? `Without ${plural(overview.inner[status], "case")} that other cases called, or that ${overview.inner[status] === 1 ? "mends" : "mend"} one` : "");
  const { busy, slots } = overview.pilots;
  const forPerson = useQuery(runningForPersonQuery).data?.counts[""] ?? 0;
  return (
    <div className="tiles">
      <Tile state="running" title="Cases running" count={Math.max(0, (cases["running"] ?? 0) - forPerson)} link={{ to: "/cases", search: { status: "running" } }} note={runningNote(sum(hours.started), forPerson)}>
        <Sparkline values={hours.started} label="Started, by the hour" tone="running" />
      </Tile>
      <Tile state="failed" title="Cases failed" count={sum(hours.failed)} link={{ to: "/cases", search: { status: "failed", ...inADay } }} note={`${span}; ${number(cases["failed"] ?? 0)} in all`} hint={besides("failed")}>
        <Sparkline values={hours.failed} label="Failed, by the hour" tone="failed" />
      </Tile>
      <Tile state="done" title="Cases completed" count={sum(hours.completed)} link={{ to: "/cases", search: { status: "completed", ...inADay } }} note={`${span}; ${number(cases["completed"] ?? 0)} in all`} hint={besides("completed")}>
        <Sparkline values={hours.completed} label="Completed, by the hour" tone="done" />
      </Tile>
      <Tile state="person" title="For a person" count={people} link={tasks || !people ? { to: "/worklist" } : { to: "/failures", search: { only: "waiting", since: "all" } }} note={people ? `${plural(tasks, "task")} in the worklist, ${plural(people - tasks, "failure")} to decide` : "nothing waits for anybody"} />
      <Tile state="waiting" title="Jobs waiting" count={waiting} link={{ to: "/jobs", search: { state: "waiting" } }} note={`${number(jobs["running"] ?? 0)} running; ${slots ? `${number(busy)} of ${plural(slots, "slot")} busy` : "no pilot is connected"}`} />
    </div>
  );
}
