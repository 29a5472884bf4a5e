import { personText } from "@/components/person-text";
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { ApiError } from "@/api/errors";
import { casesQuery, everyCase, type CaseView } from "@/api/queries";
import { useMayAll } from "@/api/session";
import { caseState, wordOf } from "@/api/states";
import { useKeys } from "@/app/keys";
import { CaseActDialog } from "@/components/case-act-dialog";
import { CASE_ACTS, type CaseAct } from "@/components/case-acts";
import { CaseInputs, DifferingContext, differingInputs, inputsText } from "@/components/case-inputs";
import { caseCounts, CaseProgress, FailedItems, failedText } from "@/components/case-progress";
import { BulkBar, DataTable, type Column, type Sort } from "@/components/data-table";
import { WithDetails } from "@/components/drawer";
import { number, plural } from "@/components/format";
import { Icon } from "@/components/icon";
import { Page } from "@/components/page";
import { EmptyState, ErrorState, Loading } from "@/components/states-of-page";
import { lastLineFirst } from "@/components/row-reason";
import { StateBadge } from "@/components/state-badge";
import { WaitsForPerson, waitsForPerson } from "@/components/task-link";
import { Duration, Time } from "@/components/time";
import { toastError } from "@/components/toasts";
import { CaseDetails } from "./details";
import { filtersOf } from "./condition";
import { Filters } from "./filters";
import { useStillRows } from "./still-rows";
import { standsStill, useWaitingReasons } from "./waiting-reasons";

const route = getRouteApi("/cases");
const idOf = (view: CaseView) => view.id;
const READ_AGAIN_MS = 4000;
const PAGES_READ_AGAIN = 2;

/** The reason in the list: what failed, or who has to do something. */
function reasonOf(view: CaseView, waitsFor: string | undefined): string {
  if (view.fault) return view.fault.message;
  if (view.status === "running" && view.tasks_open && !view.held.length) return waitsForPerson(view);
  if (view.held.length) return heldText(view);
  if (view.holds.length) return `suspended by ${personText(view.holds[0]?.by) || "somebody"}`;
  return standsStill(view) ? (waitsFor ?? `nothing runs: ${plural(caseCounts(view).waiting, "waits", "wait")}`) : failedText(view);
}

/** Begins with what it is about: a row has room for little more. */
function heldText({ id, held }: CaseView): string {
  const [first = "", ...others] = held.map((each) => (each.startsWith(`${id}:`) ? each.slice(id.length + 1) : each));
  return others.length ? `${first} and ${plural(others.length, "other item")} failed and wait for a person` : `${first} failed and waits for a person`;
}

/** That an item begins to run is no event of its case: a list that says that nothing runs is read again soon, unless it is long. */
function readAgainMs(pages: readonly { data: CaseView[] }[]): number | false {
  return pages.length <= PAGES_READ_AGAIN && pages.some((page) => page.data.some(standsStill)) ? READ_AGAIN_MS : false;
}

function Reason({ view, waitsFor }: { view: CaseView; waitsFor: string | undefined }) {
  if (view.status === "running" && view.tasks_open && !view.held.length && !view.fault) return <WaitsForPerson view={view} />;
  const said = reasonOf(view, waitsFor);
  if (said && said === failedText(view)) return <FailedItems view={view} />;
  return said ? <span title={said}>{lastLineFirst(said)}</span> : null;
}

/** So wide that no id is cut, up to a bound. */
function idWidth(rows: readonly CaseView[]): string {
  const longest = rows.reduce((most, view) => Math.max(most, view.id.length), 18);
  return `minmax(${Math.ceil(Math.min(longest, 44) * 0.88) + 2}ch, 1.1fr)`; // most letters are narrower than a digit
}

const columns = (idTrack: string, whyTrack: string, waitsFor: ReadonlyMap<string, string>): readonly Column<CaseView>[] => [
  { id: "status", narrow: 1, header: "State", width: "122px", value: (view) => view.status, cell: (view) => <StateBadge state={caseState(view)} word={view.status === "running" ? undefined : wordOf(view.status)} /> },
  { id: "id", narrow: 1, header: "Case", width: idTrack, value: (view) => view.id, cell: (view) => <Link to="/cases/$case" params={{ case: view.id }}>{view.id}</Link> },
  { id: "inputs", narrow: 1, header: "Inputs", width: "minmax(150px, 2.6fr)", cell: (view) => <CaseInputs view={view} /> },
  { id: "flow", header: "Flow", width: "minmax(84px, 0.5fr)", value: (view) => view.flow, cell: (view) => view.flow },
  { id: "items", header: "Items", width: "minmax(146px, 0.5fr)", cell: (view) => <CaseProgress view={view} /> },
  { id: "reason", narrow: 2, header: "Why", width: whyTrack, cell: (view) => <Reason view={view} waitsFor={waitsFor.get(view.id)} /> },
  { id: "started", narrow: 2, header: "Started", width: "94px", value: (view) => view.started_at, cell: (view) => <Time at={view.started_at} /> },
  { id: "runtime", header: "Took", width: "88px", align: "end", cell: (view) => <Duration from={view.started_at} to={view.ended_at} /> },
  { id: "owner", header: "Started by", width: "minmax(92px, 0.3fr)", isBlank: (view) => !view.owner, value: (view) => view.owner, cell: (view) => (view.schedule ? <span title={`Started by schedule ${view.schedule}, for ${personText(view.owner)}`}>schedule {view.schedule}</span> : personText(view.owner)) },
];

/** What says nothing leaves its room to the inputs. */
const WHY = "minmax(120px, 2.6fr)";
const NO_WHY = "minmax(60px, 0.3fr)";

/** Beside a case's pane there is room for these; the pane has the others. */
const BESIDE = ["status", "id", "items", "reason"];

/** The columns that would say nothing: an id most often begins with the name of its flow, and a flow may have no inputs. */
function idleColumns(rows: readonly CaseView[]): string[] {
  const others = [rows.every((view) => view.id.startsWith(`${view.flow}-`)) && "flow", rows.every((view) => !inputsText(view).short) && "inputs"];
  return others.filter((each) => each !== false);
}

export default function CasesPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { where } = search;
  const also = filtersOf(search);
  const question = `${where ?? ""} ${also}`;
  const query = useInfiniteQuery({ ...casesQuery({ where, also, order: search.order }), refetchInterval: ({ state }) => readAgainMs(state.data?.pages ?? []) });
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = query;
  const loaded = useMemo(() => query.data?.pages.flatMap((page) => page.data) ?? [], [query.data]);
  // Until its own answer is there, another question shows the rows of the one before: these are not kept.
  const still = useStillRows(loaded, idOf, `${question} ${search.order ?? ""} ${query.isPlaceholderData}`);
  const [selected, setSelected] = useState<Set<string>>(new Set());
  const [act, setAct] = useState<CaseAct | null>(null);
  const may = useMayAll();
  const [matching, setMatching] = useState<CaseView[] | null>(null);
  const [asked, setAsked] = useState(question);
  if (asked !== question) {
    // Another filter shows other cases: nothing is done to those that are not seen any more.
    setAsked(question);
    setSelected(new Set());
    setMatching(null);
  }
  const chosen = matching ?? still.rows.filter((view) => selected.has(view.id));
  const idTrack = idWidth(still.rows);
  const beside = Boolean(search.at);
  const waitsFor = useWaitingReasons(still.rows);
  const whyTrack = beside || still.rows.some((view) => reasonOf(view, waitsFor.get(view.id))) ? WHY : NO_WHY;
  const idle = useMemo(() => (still.rows.length ? idleColumns(still.rows).join() : ""), [still.rows]);
  const shownColumns = useMemo(() => columns(idTrack, whyTrack, waitsFor).filter((each) => (beside ? BESIDE.includes(each.id) : !idle.split(",").includes(each.id))), [idTrack, whyTrack, waitsFor, beside, idle]);
  const differing = useMemo(() => differingInputs(still.rows), [still.rows]);
  const select = (next: Set<string>) => {
    setMatching(null);
    setSelected(next);
  };
  const latest = useRef(question);
  useEffect(() => {
    latest.current = question;
  });
  const selectMatching = async () => {
    try {
      const all = await everyCase({ where, also });
      if (latest.current !== question) return;
      setMatching(all);
      setSelected(new Set(all.map(idOf)));
    } catch (refused) {
      toastError(refused);
    }
  };
  const sort = useMemo<Sort | null>(() => (search.order ? { id: search.order.replace(/^-/, ""), desc: search.order.startsWith("-") } : null), [search.order]);
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const close = useCallback(() => void navigate({ search: (before) => ({ ...before, at: undefined }) }), [navigate]);
  const acts = CASE_ACTS.filter((each) => may(each.operation));
  const failed = still.rows.filter((view) => caseState(view) === "failed" || caseState(view) === "person");
  useKeys("Cases", [
    {
      keys: "n",
      does: "next failure",
      run: () => {
        const at = failed.findIndex((view) => view.id === search.at);
        const next = failed[(at + 1) % Math.max(1, failed.length)];
        if (next) void navigate({ search: (before) => ({ ...before, at: next.id }) });
      },
    },
  ]);
  const badCondition = query.error instanceof ApiError && query.error.status === 400 && search.where ? query.error : null;
  const narrowed = Boolean(search.where || search.status || search.flow || search.since || search.ended);
  return (
    <Page
      title="Cases"
      fill
      actions={
        may("start") && (
          <Link to="/run" className="button">
            <Icon name="run" size={14} /> New run
          </Link>
        )
      }
    >
      <Filters search={search} error={badCondition} />
      <BulkBar count={chosen.length} what={chosen.length === 1 ? "case" : "cases"} note={matching && matching.length > still.rows.length ? `all that match, of which ${number(still.rows.length)} are loaded here` : ""} onClear={() => select(new Set())}>
        {!matching && chosen.length > 0 && chosen.length === still.rows.length && hasNextPage && (
          <button type="button" className="button small" onClick={() => void selectMatching()}>
            Select all that match
          </button>
        )}
        {acts.map((each) => {
          const fits = chosen.some((view) => each.fits(view));
          return (
            <button key={each.name} type="button" className={each.danger ? "button small danger" : "button small"} disabled={!fits} title={fits ? undefined : `Not for ${chosen.length === 1 ? "this case" : "any of these cases"}: ${each.why}`} onClick={() => setAct(each)}>
              {each.label}
            </button>
          );
        })}
      </BulkBar>
      {still.fresh > 0 && (
        <button type="button" className="button small new-rows" onClick={still.adopt}>
          {still.fresh} new
        </button>
      )}
      <WithDetails details={search.at ? <CaseDetails id={search.at} onClose={close} /> : null}>
        <div className="still" onPointerEnter={still.onPointerEnter} onPointerLeave={still.onPointerLeave}>
          {query.isPending && <Loading lines={8} />}
          {query.isError && !badCondition && <ErrorState error={query.error} again={() => void query.refetch()} />}
          {query.isSuccess && (
            <DifferingContext value={differing}>
              <DataTable
                label="Cases"
                rows={still.rows}
                columns={shownColumns}
                rowId={idOf}
                selected={selected}
                onSelect={acts.length ? select : undefined}
                at={search.at ?? ""}
                onOpen={(view) => void navigate({ search: (before) => ({ ...before, at: view.id }), replace: Boolean(search.at) })}
                sort={sort}
                onSort={(next) => void navigate({ search: (before) => ({ ...before, order: next ? `${next.desc ? "-" : ""}${next.id}` : undefined }) })}
                onEnd={onEnd}
                empty={
                  narrowed ? (
                    <EmptyState title="No case matches" icon="filter" action={<Link to="/cases" className="button">Show all cases</Link>}>
                      Widen the condition, or look at another status.
                      {search.where?.includes("text.contains(") && (
                        <>
                          {" "}
                          Words are looked for in the ids of cases, their flows, who started them, their inputs, why they failed, and what failed in them and waits. What a loop did for a sample is found in the Items of its case, and among the <Link to="/jobs">jobs</Link>; what fails in a case that goes on is among the <Link to="/failures">failures</Link>.
                        </>
                      )}
                    </EmptyState>
                  ) : (
                    <EmptyState title="No cases yet" icon="run" action={may("start") && <Link to="/run" className="button primary">Pick a flow and start it</Link>}>
                      A flow can also be started from a terminal: <code>mendflow start flow.yaml</code>
                    </EmptyState>
                  )
                }
              />
            </DifferingContext>
          )}
        </div>
      </WithDetails>
      <CaseActDialog act={act} cases={chosen} onClose={() => setAct(null)} onDone={() => select(new Set())} />
    </Page>
  );
}
