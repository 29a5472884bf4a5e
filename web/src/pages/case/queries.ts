import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, ask, askPage, requestExactly, requestJson, type Schemas } from "@/api/client";
import { quoted } from "@/api/queries";

export type Graph = Schemas["GraphView"];
export type GraphNode = Schemas["GraphNode"];
export type Timeline = Schemas["TimelineView"];
export type TimelineRow = Schemas["TimelineRow"];
export type HistoryEntry = Schemas["HistoryEntry"];

const path = (id: string) => ({ path: { case: id } });

export function graphQuery(id: string) {
  return queryOptions({
    queryKey: ["case", id, "graph"],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/cases/{case}/graph", { params: path(id), signal })),
  });
}

/** The node of an exlet in the graph of a case names the task that it mends, and the exlet. */
export function exletOfNode(node: string | undefined): { task: string; exlet: string } | null {
  const [, task, exlet] = /^exlet:([^:]*):([^/]+)/.exec(node ?? "") ?? [];
  return task !== undefined && exlet ? { task, exlet } : null;
}

/** The flow that the case was started with. It stays as it is. */
export function flowOfCaseQuery(id: string) {
  return queryOptions({
    queryKey: ["flow of case", id],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/cases/{case}/flow", { params: path(id), signal })),
    staleTime: Infinity,
  });
}

/** The same with every number as it was written, for the form that starts it again. */
export function exactFlowOfCaseQuery(id: string) {
  return queryOptions({
    queryKey: ["flow of case", id, "exact"],
    queryFn: ({ signal }) => requestExactly<Schemas["Flow"]>(`/api/v1/cases/${encodeURIComponent(id)}/flow`, { signal }),
    staleTime: Infinity,
  });
}

type ItemState = NonNullable<NonNullable<Parameters<typeof itemsQuery>[1]>["state"]>;
const ITEM_STATES = ["staging", "waiting", "running", "suspended", "completed", "failed", "skipped", "cancelled", "cached"] as const;

export function itemState(word: string | undefined): ItemState | undefined {
  return ITEM_STATES.find((state) => state === word);
}

/** What the list of items is narrowed to. Those that wait for a person stand apart from the others that wait, as in the list of
 * cases: an item that failed and is held is not over. */
export function itemsIn(state: string | undefined): { state?: ItemState; also?: string } {
  if (state === "person") return { also: "for_person" };
  return state === "waiting" ? { state, also: "!for_person" } : { state: itemState(state) };
}

/** The condition that an item has each of these words, however they are written. */
export function hasWords(find: string | undefined): string | undefined {
  const words = (find ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  return words.map((word) => `text.contains(${quoted(word)})`).join(" && ") || undefined;
}

export function itemsQuery(id: string, wish: { name?: string; state?: (typeof ITEM_STATES)[number]; where?: string; also?: string }) {
  return infiniteQueryOptions({
    queryKey: ["case", id, "items", wish],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) =>
      askPage(api.GET("/api/v1/cases/{case}/items", { params: { ...path(id), query: { ...wish, limit: 200, after: pageParam } }, signal })),
    getNextPageParam: (page) => page.next || (page.data.length === 200 ? page.data.at(-1)?.place : undefined) || undefined,
    placeholderData: keepPreviousData,
  });
}

export function itemQuery(id: string, item: string) {
  return queryOptions({
    queryKey: ["case", id, "item", item],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/cases/{case}/items/{item}", { params: { path: { case: id, item } }, signal })),
  });
}

/** So many entries of a history are read unless all are wanted: a case of very many items has hundreds of thousands. */
export const HISTORY_LAST = 2000;

/** `brief`: without what the engine ordered, which is not shown, and takes long to find out of a case of very many items. */
export function historyQuery(id: string, wish: { all: boolean; brief: boolean }) {
  return queryOptions({
    queryKey: ["case", id, "history", wish],
    queryFn: ({ signal }) => requestJson<HistoryEntry[]>(`/api/v1/cases/${encodeURIComponent(id)}/history`, { query: { last: wish.all ? undefined : HISTORY_LAST, brief: wish.brief || undefined }, signal }),
    placeholderData: keepPreviousData,
  });
}

export function jobQuery(job: string) {
  const at = job.lastIndexOf("/");
  const [id, serial] = [job.slice(0, at), job.slice(at + 1)];
  return queryOptions({
    queryKey: ["case", id, "job", serial],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/jobs/{case}/{serial}", { params: { path: { case: id, serial } }, signal })),
  });
}

export async function readLog(job: string, attempt: number, offset: number, signal?: AbortSignal) {
  const at = job.lastIndexOf("/");
  const params = { path: { case: job.slice(0, at), serial: job.slice(at + 1) }, query: { attempt, offset } };
  return ask(api.GET("/api/v1/jobs/{case}/{serial}/log", { params, signal }));
}

export async function readTimeline(id: string, wish: { after?: string; limit?: number; name?: string; from?: number }, signal?: AbortSignal): Promise<Timeline> {
  return ask(api.GET("/api/v1/cases/{case}/timeline", { params: { ...path(id), query: wish }, signal }));
}
