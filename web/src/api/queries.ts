/** What several pages read, by the same keys, so that it is read once and patched in one place. Pages put their own
 * queries into their own folder; the first word of the key says what the event feed invalidates (see live.ts). */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { flowOfCase } from "./case-ids";
import { api, ask, askPage, requestExactly, requestJson, type Schemas } from "./client";

export type CaseView = Schemas["CaseView"];
export type ItemView = Schemas["ItemView"];
export type FlowView = Schemas["FlowView"];
export type Fault = Schemas["Fault"];

export const PAGE = 100;

export function caseQuery(id: string) {
  return queryOptions({
    queryKey: ["case", id],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/cases/{case}", { params: { path: { case: id } }, signal })),
  });
}

export interface CasesWish {
  /** What a person typed. */
  where?: string;
  /** What the page adds to it. */
  also?: string;
  order?: string;
}

export function casesQuery(wish: CasesWish) {
  return infiniteQueryOptions({
    queryKey: ["cases", "pages", wish],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) =>
      askPage(api.GET("/api/v1/cases", { params: { query: { ...wish, limit: PAGE, after: pageParam } }, signal })),
    getNextPageParam: (page) => page.next || undefined,
    placeholderData: keepPreviousData,
  });
}

/** The case that stands in the place of a case, or `null`. */
export function laterRunQuery(id: string) {
  return queryOptions({
    queryKey: ["later-runs", flowOfCase(id), id],
    queryFn: ({ signal }) => laterRun(id, (of) => ask(api.GET("/api/v1/cases", { params: { query: { where: `stands_for in [${of.map(quoted).join(", ")}]`, order: "-started", limit: 20 } }, signal }))),
  });
}

const AGAIN_MAX = 10;

/** The last of those that run a case again, or that run one of these again, without those that were cancelled: whoever ran such a
 * one again has taken up the first as well. If all were cancelled it is the newest that runs the case itself again. `runsOf` tells
 * which run some cases again, the newest first. */
export async function laterRun<Run extends Pick<CaseView, "id" | "status">>(id: string, runsOf: (ids: readonly string[]) => Promise<readonly Run[]>): Promise<Run | null> {
  let first: Run | undefined;
  let last: Run | undefined;
  let before = [id];
  for (let turn = 0; before.length && turn < AGAIN_MAX; turn += 1) {
    const found = await runsOf(before);
    first ??= found[0];
    last = found.find((each) => each.status !== "cancelled") ?? last;
    before = found.map((each) => each.id);
  }
  return last ?? first ?? null;
}

const CASES_AT_ONCE = 40;

/** Cases by their ids, as lists show them: so many at a time as an address has room for. */
export function casesByIdQueries(ids: readonly string[]) {
  const parts = Array.from({ length: Math.ceil(ids.length / CASES_AT_ONCE) }, (_, at) => ids.slice(at * CASES_AT_ONCE, (at + 1) * CASES_AT_ONCE));
  return parts.map((part) =>
    queryOptions({
      queryKey: ["cases-by-id", part],
      queryFn: ({ signal }) => ask(api.GET("/api/v1/cases", { params: { query: { where: `id in [${part.map(quoted).join(", ")}]`, limit: part.length } }, signal })),
    }),
  );
}

/** A text as it stands in a condition. */
export function quoted(value: string): string {
  return `'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

/** How many cases match: by status, or all of them as the count of `""`. */
export function caseCountsQuery(wish: Pick<CasesWish, "where" | "also"> & { by?: "status" }) {
  return queryOptions({
    queryKey: ["cases", "counts", wish],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/cases/count", { params: { query: wish }, signal })),
    placeholderData: keepPreviousData,
  });
}

/** The cases that Home shows: those that run, without what they called and what mends them. */
export const RUNNING = "status == 'running' && parent == null && mends == null";

/** How many of those wait for a person. */
export const runningForPersonQuery = caseCountsQuery({ where: `${RUNNING} && for_person` });

const MATCHING_MAX = 20_000;

/** All cases that match, beyond the page that is shown, for an act on all of them. */
export async function everyCase(wish: CasesWish): Promise<CaseView[]> {
  const found: CaseView[] = [];
  let after = "";
  do {
    const page = await askPage(api.GET("/api/v1/cases", { params: { query: { ...wish, limit: 1000, after } } }));
    found.push(...page.data);
    after = page.next;
  } while (after && found.length < MATCHING_MAX);
  return found;
}

export function whyQuery(subject: string) {
  return queryOptions({
    queryKey: ["case", subject.split(/[:/]/)[0] ?? "", "why", subject],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/why", { params: { query: { subject } }, signal })),
  });
}

export const DECISIONS_READ = 100;

/** The decisions about failures of one case, newest first. */
export function caseDecisionsQuery(id: string) {
  return queryOptions({
    queryKey: ["decisions", "case", id],
    queryFn: ({ signal }) => requestJson<Schemas["DecisionView"][]>("/api/v1/decisions", { query: { case: id, limit: DECISIONS_READ }, signal }),
  });
}

export const flowsQuery = queryOptions({
  queryKey: ["flows"],
  queryFn: ({ signal }) => ask(api.GET("/api/v1/flows", { signal })),
  staleTime: 10_000,
});

export function flowQuery(name: string) {
  return queryOptions({
    queryKey: ["flows", name],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/flows/{name}", { params: { path: { name } }, signal })),
  });
}

/** The same with every number as it was written: a form sends values again. */
export function exactCaseQuery(id: string) {
  return queryOptions({
    queryKey: ["case", id, "exact"],
    queryFn: ({ signal }) => requestExactly<CaseView>(`/api/v1/cases/${encodeURIComponent(id)}`, { signal }),
  });
}

export function exactFlowQuery(name: string) {
  return queryOptions({
    queryKey: ["flows", name, "exact"],
    queryFn: ({ signal }) => requestExactly<FlowView>(`/api/v1/flows/${encodeURIComponent(name)}`, { signal }),
  });
}

/** The file that the newest version of a flow was read from. */
export function flowFileQuery(name: string) {
  return queryOptions({
    queryKey: ["flows", name, "file"],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/flows/{name}/file", { params: { path: { name } }, signal })),
  });
}

/** The same for the version that a case runs. Whoever deploys that version again may give another file. */
export function caseFlowFileQuery(id: string) {
  return queryOptions({
    queryKey: ["flow-file-of-case", id],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/cases/{case}/flow/file", { params: { path: { case: id } }, signal })),
  });
}

/** Alerts that are open, or all; messages that need no act on request. */
export function alertsQuery(every = false, messages = false) {
  return queryOptions({
    queryKey: ["alerts", { every, messages }],
    queryFn: ({ signal }) => requestJson<Schemas["AlertView"][]>("/api/v1/alerts", { query: { all: every, severity: messages ? "info" : undefined }, signal }),
  });
}

export const pilotsQuery = queryOptions({
  queryKey: ["pilots"],
  queryFn: ({ signal }) => ask(api.GET("/api/v1/pilots", { signal })),
  refetchInterval: 5000,
});

/** Everything at a glance; events have it read again. The server keeps an answer for a while where it is dear: so what the last
 * event told may be in the next one only, and pilots tell no events. */
export const overviewQuery = queryOptions({
  queryKey: ["overview"],
  refetchInterval: 10_000,
  queryFn: ({ signal }) => ask(api.GET("/api/v1/overview", { signal })),
});
