/** Jobs of all cases: what waits and for what, what runs where, and what has ended. */
import { personText } from "@/components/person-text";
import { useInfiniteQuery, useQueries, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo } from "react";
import { api, ask, askPage } from "@/api/client";
import { whyQuery } from "@/api/queries";
import { DataTable, type Column } from "@/components/data-table";
import { DetailsPane, WithDetails } from "@/components/drawer";
import { number, plural } from "@/components/format";
import { itemText } from "@/components/item-text";
import { Facts, Page } from "@/components/page";
import { RowReason } from "@/components/row-reason";
import { EmptyState, ErrorState, Loading } from "@/components/states-of-page";
import { StateBadge, StateIcon } from "@/components/state-badge";
import { Duration, Time } from "@/components/time";
import { TimeChips, TimeFilter } from "@/components/time-filter";
import { WhereField } from "@/components/where-field";
import { JOB_NAMES, JOB_PLACES } from "@/components/where-names";
import { Why } from "@/components/why";
import { jobQuery } from "../case/queries";
import { asksFor, needsOf, type Job, type ListedJob } from "./needs";
import { filtersOf, isNarrowed, LIVE } from "./condition";
import { JOB_STATES, type JobsSearch } from "./search";
import "@/styles/resources.css";

const route = getRouteApi("/jobs");
const ICONS = { waiting: "waiting", running: "running", failed: "failed", completed: "done" } as const;
const NONE_THERE = { waiting: "No job waits", running: "No job runs", failed: "No job has failed", completed: "No job has completed" };
const PAGE_JOBS = 200;
/** As many pages are read by themselves where the rows of a lot are looked for. */
const PAGES_READ = 25;

function stateOfJob(job: Job) {
  if (job.state !== "available") return <StateBadge of={job.state ?? ""} />;
  return job.suspended ? <StateBadge of="suspended" /> : <StateBadge state="waiting" />;
}

const COLUMNS: readonly Column<ListedJob>[] = [
  { id: "state", narrow: 1, header: "State", width: "112px", value: (job) => job.state, cell: stateOfJob },
  { id: "item", narrow: 1, header: "Item", width: "minmax(140px, 1fr)", value: (job) => job.spec.item, cell: (job) => <Link to="/cases/$case" params={{ case: job.case }} search={{ view: "items", item: job.spec.item }} title={itemText(job.spec)}>{itemText(job.spec)}</Link> },
  { id: "case", narrow: 1, header: "Case", width: "minmax(150px, 1fr)", value: (job) => job.case, cell: (job) => <Link to="/cases/$case" params={{ case: job.case }}>{job.case}</Link> },
  { id: "why", narrow: 2, header: "Why", width: "minmax(170px, 2fr)", cell: (job) => <RowReason text={job.why} /> },
  { id: "asks", header: "Asks for", width: "minmax(110px, 0.9fr)", value: asksFor, cell: (job) => <span title={asksFor(job)}>{asksFor(job)}</span> },
  { id: "pilot", header: "Pilot", width: "minmax(90px, 0.7fr)", isBlank: (job) => !job.pilot, value: (job) => job.pilot, cell: (job) => job.pilot ?? "" },
  { id: "attempts", header: "Attempts", width: "88px", align: "end", isBlank: (job) => !job.history.length, value: (job) => job.history.length, cell: (job) => job.history.length || "" },
  { id: "created", narrow: 2, header: "Submitted", width: "100px", value: (job) => job.created_at, cell: (job) => <Time at={job.created_at} /> },
  { id: "ended", header: "Ended", width: "100px", isBlank: (job) => !job.finished_at, value: (job) => job.finished_at, cell: (job) => (job.finished_at ? <Time at={job.finished_at} /> : "") },
  { id: "owner", header: "Owner", width: "minmax(84px, 0.4fr)", isBlank: (job) => !job.spec.owner, value: (job) => job.spec.owner ?? "", cell: (job) => personText(job.spec.owner) },
];

/** The samples, or null while one of them is not known yet. One that is over, and gone, is left out. */
function useSamples(like: string | undefined): Job[] | null {
  const ids = like ? like.split(",") : [];
  const found = useQueries({ queries: ids.map((id) => ({ ...jobQuery(id), staleTime: Infinity })) });
  return found.some((each) => each.isPending) ? null : found.flatMap((each) => (each.data ? [each.data as Job] : []));
}

function leadOf(search: JobsSearch): string {
  const { state } = search;
  if (isNarrowed(search)) return state ? `Jobs that match, of those ${state}.` : "All jobs that match, also those that have ended.";
  return state === "failed" || state === "completed" ? `Jobs that have ${state}, of all cases, the newest first${state === "failed" ? "; also those in whose place another was submitted since, by a repair or because the case was run again" : ""}.` : "Jobs of all cases that have not ended.";
}

export default function JobsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const samples = useSamples(search.like);
  const lots = useMemo(() => (search.like && samples ? new Set(samples.map(needsOf)) : null), [search.like, samples]);
  const state = search.like ? "waiting" : search.state;
  const { where } = search;
  const also = filtersOf(search, samples ?? []);
  const some = isNarrowed(search);
  const change = (changed: Partial<JobsSearch>) => void navigate({ search: (before) => ({ ...before, ...changed }) });
  const query = useInfiniteQuery({
    queryKey: ["jobs", "pages", where, also],
    enabled: samples !== null,
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) => askPage(api.GET("/api/v1/jobs", { params: { query: { where, also, limit: PAGE_JOBS, after: pageParam } }, signal })),
    getNextPageParam: (page) => page.next || undefined,
  });
  const counts = useQuery({
    queryKey: ["jobs", "counts"],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/jobs/count", { params: { query: { where: LIVE, by: "state" } }, signal })),
  }).data?.counts;
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = query;
  const pages = query.data?.pages.length ?? 0;
  const rows = useMemo(() => {
    const all = (query.data?.pages.flatMap((page) => page.data) ?? []) as ListedJob[];
    return lots ? all.filter((job) => lots.has(needsOf(job))) : all;
  }, [query.data, lots]);
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  useEffect(() => {
    if (lots && pages < PAGES_READ) onEnd();
  }, [lots, pages, onEnd]);
  const badCondition = search.where && query.error ? query.error : null;
  const count = { waiting: counts?.["available"] ?? 0, running: counts?.["running"] ?? 0 };
  return (
    <Page title="Jobs" fill lead={search.like ? undefined : leadOf(search)}>
      <div className="toolbar">
        <nav className="segments" aria-label="State of jobs">
          <Link from="/jobs" to="/jobs" search={(before) => ({ ...before, state: undefined, like: undefined, at: undefined })} className="segment" aria-current={!state ? "true" : undefined} activeOptions={{ exact: true, explicitUndefined: true }}>
            {some ? "all" : "not ended"} {!some && <span className="number">{counts && number(count.waiting + count.running)}</span>}
          </Link>
          {JOB_STATES.map((each) => (
            <Link key={each} from="/jobs" to="/jobs" search={(before) => ({ ...before, state: each, like: undefined, at: undefined })} className="segment" aria-current={state === each && !search.like ? "true" : undefined} activeOptions={{ exact: true, explicitUndefined: true }}>
              <StateIcon state={ICONS[each]} /> {each} {!some && each in count && <span className="number">{counts && number(count[each as keyof typeof count])}</span>}
            </Link>
          ))}
        </nav>
        <WhereField label="Condition for jobs" value={search.where ?? ""} names={JOB_NAMES} places={JOB_PLACES} placeholder="words, or name == 'align' && resources.memory > '8 GB'" error={badCondition} onSearch={(next) => void navigate({ search: (before) => ({ ...before, where: next.trim() || undefined }) })} />
      </div>
      {!search.like && (
        <div className="toolbar">
          <TimeFilter label="Submitted" span={search.since} from={search.from} to={search.to} onChange={(since, from, to) => change({ since, from, to })} />
          <TimeFilter label="Ended" span={search.ended} from={search.endedFrom} to={search.endedTo} onChange={(ended, endedFrom, endedTo) => change({ ended, endedFrom, endedTo })} />
          <TimeChips what="jobs" began="submitted" search={search} onChange={change} />
        </div>
      )}
      {search.like && samples?.[0] && <Lot sample={samples[0].id} count={rows.length} whole={!hasNextPage} />}
      <WithDetails details={search.at ? <JobDetails key={search.at} id={search.at} onClose={() => void navigate({ search: (before) => ({ ...before, at: undefined }) })} /> : null}>
        {query.isPending && <Loading lines={6} />}
        {query.isError && !badCondition && <ErrorState error={query.error} again={() => void query.refetch()} />}
        {query.isSuccess && (
          <DataTable
            label="Jobs"
            rows={rows}
            columns={COLUMNS}
            rowId={(job) => job.id}
            at={search.at ?? ""}
            onOpen={(job) => void navigate({ search: (before) => ({ ...before, at: job.id }), replace: Boolean(search.at) })}
            onEnd={onEnd}
            empty={
              <EmptyState title={some || search.like ? "No job matches" : NONE_THERE[state ?? "waiting"]} icon="check" action={some || search.like ? <Link to="/jobs" className="button">Show all jobs</Link> : undefined}>
                {search.like ? "Those that waited have begun meanwhile." : where ? "Words are looked for in the ids, items, elements of loops, owners and commands of jobs, and in why they failed." : "Of a case that was pruned, no job is kept."}
              </EmptyState>
            }
          />
        )}
      </WithDetails>
    </Page>
  );
}

/** What all of them wait for. */
function Lot({ sample, count, whole }: { sample: string; count: number; whole: boolean }) {
  const why = useQuery(whyQuery(sample)).data;
  return (
    <p className="notice">
      <StateIcon state="waiting" />
      <span>
        {plural(count, "job waits", "jobs wait")}
        {!whole && ", and more are looked for"}: {(why?.sentence ?? "").replace(/^[^:]*: /, "").replaceAll("`", "")}
      </span>
    </p>
  );
}

function JobDetails({ id, onClose }: { id: string; onClose: () => void }) {
  const job = useQuery(jobQuery(id)).data as Job | undefined;
  return (
    <DetailsPane
      label={`Job ${id}`}
      title={id}
      onClose={onClose}
      actions={
        job && (
          <Link to="/cases/$case" params={{ case: job.case }} search={{ view: "items", item: job.spec.item }} className="button small">
            Open
          </Link>
        )
      }
    >
      <Why subject={id} />
      {job && (
        <Facts
          facts={[
            ["State", stateOfJob(job)],
            ["Item", itemText(job.spec)],
            ["Asks for", asksFor(job)],
            ["Pilot", job.pilot],
            ["Submitted", <Time key="submitted" at={job.created_at} />],
            ["Since then", <Duration key="since" from={job.created_at} to={job.finished_at} />],
            ["Attempts", job.history.length || null],
            ["Priority", job.spec.priority || null],
            ["Owner", personText(job.spec.owner)],
          ]}
        />
      )}
    </DetailsPane>
  );
}
