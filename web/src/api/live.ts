/** What the event feed does to the caches: known cases are patched at once, what depends on a change is read again, at most
 * once in a while for each kind, and only if a page shows it. */
import { useEffect, useRef, useSyncExternalStore } from "react";
import type { Query, QueryClient, QueryKey } from "@tanstack/react-query";
import { flowOfCase } from "./case-ids";
import type { Schemas } from "./client";
import { feed, type ChangeEvent, type Changes, type FeedStatus } from "./feed";
import { alertsQuery } from "./queries";

type CaseView = Schemas["CaseView"];

/** How long one kind of query is left alone after it was read again. */
const PAUSE_MS = 1000;
/** And how many times as long as its answer took, but no longer than somebody waits who looks at it. */
const RESTS = 4;
const LONGEST_REST_MS = 8000;

/** Which queries a change concerns. The keys are those of api/queries.ts. */
export function concerned(event: ChangeEvent): QueryKey[] {
  switch (event.kind) {
    case "case":
      // What came of a repair is known when its case goes on to its end.
      return [["case", event.case], ["later-runs", flowOfCase(event.case)], ["cases"], ["overview"], ["jobs"], ["failures"], ["decisions"]];
    case "item":
      return [["case", event.case], ["overview"], ["jobs"]];
    case "user-task":
      return [["worklist"], ["case", event.case], ["cases"], ["overview"]];
    case "alert":
      return [["alerts"], ["overview"]];
    case "repair":
      return [["failures"], ["decisions"], ["rules"], ["proposals"], ["case", event.case], ["overview"]];
    case "message":
      return [["case", event.case]];
    default:
      return [];
  }
}

/** The lists of cases by their ids that have one of these in it. */
export function listsWith(client: QueryClient, events: readonly ChangeEvent[]): QueryKey[] {
  const cases = new Set(events.map((event) => event.case).filter(Boolean));
  const lists = client.getQueryCache().findAll({ queryKey: ["cases-by-id"] }).map((query) => query.queryKey);
  return lists.filter((key) => (key[1] as readonly string[]).some((id) => cases.has(id)));
}

/** Reads again what a change concerns: at most once in PAUSE_MS, and the longer an answer took, the more seldom. So a page
 * that shows something dear, such as the history of a very large case, costs the server a fifth of its time, however much
 * happens: four rests follow each answer. Where an answer takes longer than LONGEST_REST_MS / RESTS, the rest is of that
 * length, and the share grows with the answer: whoever looks at the page is not left behind. What is being read is not begun
 * anew, but read once more when it is there. */
export class Invalidation {
  private readonly due = new Map<string, QueryKey>();
  private readonly waiting = new Set<Query>();
  private readonly began = new WeakMap<Query, number>();
  private readonly took = new WeakMap<Query, number>();
  private timer: ReturnType<typeof setTimeout> | null = null;
  private last = 0;

  constructor(private readonly client: QueryClient) {
    client.getQueryCache().subscribe((event) => {
      if (event.type !== "updated") return;
      if (event.action.type === "fetch") this.began.set(event.query, Date.now());
      else if (event.action.type === "success" || event.action.type === "error") this.took.set(event.query, Date.now() - (this.began.get(event.query) ?? Date.now()));
    });
  }

  add(keys: QueryKey[]): void {
    for (const key of keys) this.due.set(JSON.stringify(key), key);
    if (this.timer || !this.due.size) return;
    this.timer = setTimeout(() => this.flush(), Math.max(50, this.last + PAUSE_MS - Date.now()));
  }

  private flush(): void {
    this.timer = null;
    this.last = Date.now();
    const cache = this.client.getQueryCache();
    for (const queryKey of this.due.values()) for (const query of cache.findAll({ queryKey })) this.waiting.add(query);
    this.due.clear();
    for (const query of this.waiting) {
      const readAt = Math.max(query.state.dataUpdatedAt, query.state.errorUpdatedAt);
      const rested = this.last - readAt >= Math.min((this.took.get(query) ?? 0) * RESTS, LONGEST_REST_MS);
      if (query.isActive() && (query.state.fetchStatus === "fetching" || !rested)) continue;
      this.waiting.delete(query);
      void this.client.invalidateQueries({ queryKey: query.queryKey, exact: true });
    }
    if (this.waiting.size) this.timer ??= setTimeout(() => this.flush(), PAUSE_MS);
  }
}

/** The newest state of each case among the events. */
function newestStates(events: ChangeEvent[]): Map<string, ChangeEvent> {
  const newest = new Map<string, ChangeEvent>();
  for (const event of events) if (event.kind === "case" && event.state) newest.set(event.case, event);
  return newest;
}

const OVER = new Set<string>(["completed", "failed", "cancelled"]);
const STATUSES = new Set(["running", "suspended", "completed", "failed", "cancelled"]);

function patched(view: CaseView, event: ChangeEvent | undefined): CaseView {
  if (!event || !event.state || !STATUSES.has(event.state) || view.status === event.state) return view;
  const status = event.state as CaseView["status"];
  return { ...view, status, ended_at: OVER.has(status) ? event.at : 0 };
}

export function patchCases(client: QueryClient, events: ChangeEvent[]): void {
  const newest = newestStates(events);
  if (!newest.size) return;
  for (const [id, event] of newest) {
    client.setQueryData<CaseView>(["case", id], (view) => view && patched(view, event));
  }
  client.setQueriesData<{ pages: { data: CaseView[]; next: string }[]; pageParams: unknown[] }>(
    { queryKey: ["cases", "pages"] },
    (list) =>
      list && {
        ...list,
        pages: list.pages.map((page) => ({ ...page, data: page.data.map((view) => patched(view, newest.get(view.id))) })),
      },
  );
}

/** An alert that is over goes at once; the rest of its page is read again when its turn comes. */
export function dropClosedAlerts(client: QueryClient, events: ChangeEvent[]): void {
  const closed = new Set(events.filter((event) => event.kind === "alert" && event.state === "closed").map((event) => event.message));
  if (!closed.size) return;
  client.setQueryData<Schemas["OverviewView"]>(["overview"], (view) => view && { ...view, alerts: view.alerts.filter((alert) => !closed.has(alert.id)) });
  client.setQueryData<Schemas["AlertView"][]>(alertsQuery().queryKey, (alerts) => alerts?.filter((alert) => !closed.has(alert.id)));
}

/** The case itself, why it stands so, and its graph. */
const AT_ONCE = new Set<unknown>([undefined, "why", "graph"]);

/** How a case that has just ended stands, and why, is read at once: what was being read may be of before its end. */
export function readEnded(client: QueryClient, events: ChangeEvent[]): void {
  const ended = new Set([...newestStates(events).values()].filter((event) => OVER.has(event.state ?? "")).map((event) => event.case));
  const queryKeys = ended.size ? client.getQueryCache().findAll({ queryKey: ["case"], type: "active" }).map((query) => query.queryKey) : [];
  for (const queryKey of queryKeys) if (ended.has(String(queryKey[1])) && AT_ONCE.has(queryKey[2])) void client.invalidateQueries({ queryKey, exact: true });
}

export function startLive(client: QueryClient): void {
  const invalidation = new Invalidation(client);
  feed.listen(({ events, missed }) => {
    if (missed) void client.invalidateQueries();
    patchCases(client, events);
    dropClosedAlerts(client, events);
    readEnded(client, events);
    const keys = new Map<string, QueryKey>();
    for (const key of [...events.flatMap(concerned), ...listsWith(client, events)]) keys.set(JSON.stringify(key), key);
    invalidation.add([...keys.values()]);
  });
  feed.watchStatus(() => {
    // A feed also ends with the session of its reader: whoever asks who they are is told.
    if (feed.status === "away") void client.invalidateQueries({ queryKey: ["me"] });
  });
  feed.start();
}

/** Be told of changes, once a frame. The listener may be made anew in each render. */
export function useChanges(listener: (changes: Changes) => void): void {
  const latest = useRef(listener);
  useEffect(() => {
    latest.current = listener;
  });
  useEffect(() => feed.listen((changes) => latest.current(changes)), []);
}

export function useFeedStatus(): { status: FeedStatus; waiting: number } {
  const status = useSyncExternalStore(feed.watchStatus, () => feed.status);
  const waiting = useSyncExternalStore(feed.watchStatus, () => feed.waiting);
  return { status, waiting };
}
