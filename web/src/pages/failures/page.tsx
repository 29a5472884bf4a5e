/** Failures by their cause, those first by which most cases stand still. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { CountLink } from "@/components/count-link";
import { LAPTOP_PX, useNarrow } from "@/app/screen-widths";
import { DataTable, type Column } from "@/components/data-table";
import { number, plural } from "@/components/format";
import { Page } from "@/components/page";
import { helpedText } from "@/components/recovery/decision-words";
import { CauseText } from "@/components/recovery/message";
import { failureCountsQuery, failuresQuery, ruleSetsQuery, type FailureGroup } from "@/components/recovery/queries";
import { treeKey } from "@/components/recovery/rule-walk";
import { Sparkline } from "@/components/sparkline";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import "@/components/recovery/recovery.css";
import { HANDLING, PERIODS } from "./search";

const route = getRouteApi("/failures");
const HOUR = 3_600_000;
const SINCE: Record<string, number> = { hour: HOUR, day: 24 * HOUR, week: 7 * 24 * HOUR };
const PERIOD_WORDS = { hour: "last hour", day: "last day", week: "last week", all: "all time" } as const;
const HANDLING_WORDS = { waiting: "wait for a person", unhandled: "nobody took them up", "run-again": "somebody ran the case again", settled: "the case completed or was cancelled", rejected: "a person rejected it", told: "a person was only told", handled: "a rule, or a person, did something" } as const;

/** The moment that the list begins with, by whole minutes, so that the same list is not read under many names. */
function sinceOf(period: string): number {
  const span = SINCE[period];
  return span ? Math.floor((Date.now() - span) / 60_000) * 60_000 : 0;
}

export default function FailuresPage() {
  const { since = "day", flow, only } = route.useSearch();
  const navigate = route.useNavigate();
  const from = useMemo(() => sinceOf(since), [since]);
  const groups = useQuery(failuresQuery({ since: from, flow }));
  const sets = useQuery(ruleSetsQuery);
  const isNarrow = useNarrow(LAPTOP_PX);
  const flows = [...new Set([...(groups.data ?? []).flatMap((each) => each.flows), ...(flow ? [flow] : [])])].toSorted();
  const rows = useMemo(() => shown(groups.data ?? [], only), [groups.data, only]);
  const waiting = (groups.data ?? []).reduce((sum, each) => sum + each.waiting, 0);
  return (
    <Page
      title="Failures"
      fill
      lead={groups.data ? `${plural(groups.data.length, "cause")}, ${plural(groups.data.reduce((sum, each) => sum + each.count, 0), "failure")}${waiting ? `; ${plural(waiting, "waits", "wait")} for a person` : ""}` : undefined}
      actions={
        <>
          <label className="check-label">
            <span className="muted">Time</span>
            <select value={since} onChange={(event) => void navigate({ search: (before) => ({ ...before, since: event.target.value as (typeof PERIODS)[number] }) })}>
              {PERIODS.map((each) => (
                <option key={each} value={each}>{PERIOD_WORDS[each]}</option>
              ))}
            </select>
          </label>
          <label className="check-label">
            <span className="muted">Flow</span>
            <select value={flow ?? ""} onChange={(event) => void navigate({ search: (before) => ({ ...before, flow: event.target.value || undefined }) })}>
              <option value="">all flows</option>
              {flows.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
          <label className="check-label">
            <span className="muted">Handled</span>
            <select value={only ?? ""} onChange={(event) => void navigate({ search: (before) => ({ ...before, only: (event.target.value || undefined) as (typeof HANDLING)[number] | undefined }) })}>
              <option value="">either way</option>
              {HANDLING.map((each) => (
                <option key={each} value={each}>{HANDLING_WORDS[each]}</option>
              ))}
            </select>
          </label>
        </>
      }
    >
      <Loaded query={groups} lines={8}>
        {(all) => (
          <DataTable
            label="Failures by cause"
            rows={rows}
            columns={isNarrow ? NARROW : COLUMNS}
            wraps
            rowId={(row) => row.id}
            onOpen={(row) => void navigate({ to: "/failures/$group", params: { group: row.id } })}
            empty={
              all.length ? (
                <EmptyState title="No cause matches" icon="filter" action={<Link to="/failures" className="button">Show all causes</Link>}>
                  There are {plural(all.length, "cause")} of failures in this time, none of that kind.
                </EmptyState>
              ) : (
                <EmptyState title={since === "all" ? "Nothing has failed yet" : `Nothing has failed in the ${PERIOD_WORDS[since]}`} icon="check" action={since === "all" ? <Link to="/rules" className="button">See the rules</Link> : <Link to="/failures" search={{ since: "all" }} className="button">Look at all time</Link>}>
                  What fails is collected here by its cause, and each cause can be taught a repair.{" "}
                  {sets.data ? `${plural(sets.data.reduce((sum, each) => sum + each.rule_count, 0), "rule")} stand ready.` : ""}
                </EmptyState>
              )
            }
          />
        )}
      </Loaded>
    </Page>
  );
}

const COUNTED = { waiting: "waiting", unhandled: "unhandled", "run-again": "run_again", settled: "settled", rejected: "rejected", told: "told" } as const;

function shown(groups: readonly FailureGroup[], only: (typeof HANDLING)[number] | undefined): FailureGroup[] {
  const kept = groups.filter((each) => !only || (only === "handled" ? each.handled.some((one) => one.count > (one.results["told"] ?? 0)) : each[COUNTED[only]] > 0));
  return kept.toSorted((one, other) => other.waiting - one.waiting || other.unhandled - one.unhandled || other.count - one.count);
}

function Hours({ group }: { group: FailureGroup }) {
  const since = Math.floor(Date.now() / HOUR) * HOUR - 23 * HOUR;
  const counts = useQuery({ ...failureCountsQuery(group.id, { period_ms: HOUR, since }), staleTime: 60_000 });
  const values = Array.from({ length: 24 }, (_, hour) => counts.data?.periods.find((each) => each.at >= since + hour * HOUR && each.at < since + (hour + 1) * HOUR)?.count ?? 0);
  return <Sparkline values={values} label={`${number(values.reduce((sum, each) => sum + each, 0))} in the last 24 hours`} tone="failed" />;
}

/** What no rule did anything about: somebody has decided it, or has run the case again. */
function TakenUpByPeople({ group }: { group: FailureGroup }) {
  const ways = [
    { only: "rejected", count: group.rejected, said: "a person rejected it" },
    { only: "run-again", count: group.run_again, said: "run again" },
    { only: "settled", count: group.settled, said: "settled" },
  ] as const;
  const [way] = ways.filter((each) => each.count > 0);
  if (!way) return <span className="muted">{group.waiting ? "" : "nobody"}</span>;
  return (
    <Link to="/failures/$group" params={{ group: group.id }} search={{ only: way.only }}>
      {way.said}
      {way.count < group.count && `: ${number(way.count)}`}
    </Link>
  );
}

function Handled({ group }: { group: FailureGroup }) {
  const [first, ...others] = group.handled;
  if (!first) return <TakenUpByPeople group={group} />;
  const told = first.results["told"] ?? 0;
  const helped = told === first.count ? "told a person" : helpedText(first);
  const people = group.rejected + group.run_again + group.settled > 0 && (
    <>
      , <TakenUpByPeople group={group} />
    </>
  );
  const more = others.length > 0 && (
    <>
      {" "}
      <Link to="/failures/$group" params={{ group: group.id }}>and {others.length} more</Link>
    </>
  );
  if (!first.rules) {
    return (
      <span>
        by hand: {first.exlet || "nothing"} {helped}
        {more}
        {people}
      </span>
    );
  }
  return (
    <span>
      <Link to="/rules/$name" params={{ name: first.rules }} search={{ tree: treeKey(group.type, first.tree), rule: first.rule }} title={`${first.exlet}: ${Object.entries(first.results).map(([word, count]) => `${count} ${word}`).join(", ")}`}>
        {first.exlet || "nothing"} {helped}
      </Link>
      {more}
      {people}
    </span>
  );
}

const COLUMNS: Column<FailureGroup>[] = [
  {
    id: "cause",
    header: "Cause",
    width: "minmax(190px, 3.2fr)",
    value: (row) => row.message,
    cell: (row) => (
      <Link to="/failures/$group" params={{ group: row.id }} className="cause-link" title={row.message}>
        <CauseText text={row.message} />
      </Link>
    ),
  },
  { id: "kind", header: "Kind", width: "100px", value: (row) => row.category, cell: (row) => row.category || row.type },
  { id: "where", header: "Flow and task", width: "minmax(110px, 1.5fr)", value: (row) => row.flows.join(), cell: (row) => <span title={`${row.flows.join(", ")}: ${row.tasks.join(", ")}`}>{row.flows.join(", ")}: {row.tasks.join(", ")}</span> },
  { id: "hours", header: "24 hours", width: "104px", cell: (row) => <Hours group={row} /> },
  { id: "count", header: "Failures", width: "78px", align: "end", value: (row) => row.count, cell: (row) => number(row.count) },
  { id: "cases", header: "Cases", width: "64px", align: "end", value: (row) => row.cases, cell: (row) => <CountLink count={row.cases} what="cases" link={{ to: "/failures/$group", params: { group: row.id } }} /> },
  { id: "waiting", header: "Waiting", width: "72px", align: "end", value: (row) => row.waiting, cell: (row) => <CountLink count={row.waiting} what="wait for a person" className={row.waiting ? "waiting-count" : ""} link={{ to: "/failures/$group", params: { group: row.id }, search: { only: "waiting" } }} /> },
  { id: "unhandled", header: "Nobody", width: "74px", align: "end", value: (row) => row.unhandled, cell: (row) => <CountLink count={row.unhandled} what="that nobody took up" link={{ to: "/failures/$group", params: { group: row.id }, search: { only: "unhandled" } }} /> },
  { id: "handled", header: "Handled by", width: "minmax(100px, 1.2fr)", value: (row) => row.handled[0]?.exlet ?? "", cell: (row) => <Handled group={row} /> },
  { id: "last", header: "Last", width: "92px", value: (row) => row.last_at, cell: (row) => <Time at={row.last_at} /> },
];

/** On a phone, or a tablet, a row has its numbers in words. */
function Numbers({ group }: { group: FailureGroup }) {
  const parts = [plural(group.count, "failure"), group.waiting && `${plural(group.waiting, "waits", "wait")} for a person`, group.unhandled && `${number(group.unhandled)} that nobody took up`, group.run_again && `${number(group.run_again)} run again`, group.settled && `${number(group.settled)} settled`, group.rejected && `${number(group.rejected)} rejected by a person`];
  return <>{parts.filter(Boolean).join(" · ")}</>;
}

const NARROW: Column<FailureGroup>[] = [
  ...COLUMNS.filter(({ id }) => id === "cause").map((each) => ({ ...each, narrow: 1 as const })),
  { id: "numbers", narrow: 2, header: "Failures", width: "1fr", cell: (row) => <Numbers group={row} /> },
  ...COLUMNS.filter(({ id }) => id === "last").map((each) => ({ ...each, narrow: 2 as const })),
];
