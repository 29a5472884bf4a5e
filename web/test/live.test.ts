import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { ChangeEvent } from "@/api/feed";
import { concerned, dropClosedAlerts, Invalidation, listsWith, patchCases, readEnded } from "@/api/live";
import { alertsQuery, casesByIdQueries, laterRunQuery } from "@/api/queries";

const failed: ChangeEvent = { serial: 7, at: 99, kind: "case", case: "a-1", item: null, state: "failed", message: "" };

it("patches cases that are shown, and leaves the others", () => {
  const client = new QueryClient();
  const list = { pages: [{ data: [{ id: "a-1", status: "running", ended_at: 0 }, { id: "b-1", status: "running" }], next: "" }], pageParams: [""] };
  client.setQueryData(["cases", "pages", {}], list);
  client.setQueryData(["case", "a-1"], { id: "a-1", status: "running", ended_at: 0 });
  patchCases(client, [failed]);
  expect(client.getQueryData(["case", "a-1"])).toMatchObject({ status: "failed", ended_at: 99 });
  expect(client.getQueryData<typeof list>(["cases", "pages", {}])?.pages[0]?.data.map((view) => view.status)).toEqual(["failed", "running"]);
});
it("knows which queries a change concerns", () => {
  expect(concerned(failed)).toContainEqual(["case", "a-1"]);
  expect(concerned({ ...failed, kind: "user-task" })).toEqual(expect.arrayContaining([["worklist"], ["cases"]]));
});

it("reads for what happens elsewhere neither the later runs of a case nor lists without it", () => {
  const client = new QueryClient();
  for (const { queryKey } of casesByIdQueries(["a-1", "b-2"])) client.setQueryData(queryKey, []);
  client.setQueryData(laterRunQuery("a-1").queryKey, null);
  const reads = (event: ChangeEvent) => [...concerned(event), ...listsWith(client, [event])].flatMap((queryKey) => client.getQueryCache().findAll({ queryKey })).map((query) => query.queryKey[0]);
  expect(reads({ ...failed, case: "night-survey-9" })).toEqual([]);
  expect(reads({ ...failed, case: "b-2" })).toEqual(["cases-by-id"]);
  expect(reads({ ...failed, case: "a-2" })).toEqual(["later-runs"]);
});

it("drops an alert that is over at once", () => {
  const client = new QueryClient();
  client.setQueryData(alertsQuery().queryKey, [{ id: "a" }, { id: "b" }] as never);
  dropClosedAlerts(client, [{ ...failed, kind: "alert", state: "closed", message: "a" }]);
  expect(client.getQueryData(alertsQuery().queryKey)).toEqual([{ id: "b" }]);
});

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A query that is shown, and whose answer takes so long; and how often it was read in a time of steady changes. */
async function readsOf(answerMs: number, forMs: number): Promise<number> {
  const client = new QueryClient();
  const invalidation = new Invalidation(client);
  let reads = 0;
  const queryFn = async () => {
    reads += 1;
    await new Promise((done) => setTimeout(done, answerMs));
    return reads;
  };
  const leave = new QueryObserver(client, { queryKey: ["case", "a-1"], queryFn }).subscribe(() => undefined);
  for (let at = 0; at < forMs; at += 100) {
    invalidation.add([["case"]]);
    await vi.advanceTimersByTimeAsync(100);
  }
  leave();
  client.clear();
  return reads;
}

it("reads again what changes, once a second where the answer is quick", async () => {
  const reads = await readsOf(10, 20_000);
  expect(reads).toBeGreaterThan(15);
  expect(reads).toBeLessThanOrEqual(22);
});
it("reads the more seldom the longer an answer takes, and never begins a read anew while it lasts", async () => {
  const reads = await readsOf(2000, 120_000);
  expect(reads).toBeGreaterThanOrEqual(10);
  expect(reads).toBeLessThanOrEqual(12);
});
it("does not leave a page as it was for longer than somebody waits who looks at it", async () => {
  const reads = await readsOf(10_000, 120_000);
  expect(reads).toBeGreaterThanOrEqual(6);
  expect(reads).toBeLessThanOrEqual(7);
});
it("reads at once how a case stands that has ended, even while an older answer is on its way", async () => {
  const client = new QueryClient();
  const said = ["is running", "failed"];
  const reads: string[] = [];
  client.setQueryData(["case", "a-1", "why", "a-1"], "is running");
  const observer = (queryKey: string[]) =>
    new QueryObserver(client, {
      queryKey,
      queryFn: async () => {
        reads.push(queryKey.join(" "));
        const answer = said[reads.length > 3 ? 1 : 0];
        await new Promise((done) => setTimeout(done, 300));
        return answer;
      },
    }).subscribe(() => undefined);
  const leave = [observer(["case", "a-1", "why", "a-1"]), observer(["case", "a-1", "history"]), observer(["case", "b-1"])];
  await vi.advanceTimersByTimeAsync(100);
  readEnded(client, [{ ...failed, state: "running" }]);
  expect(reads).toHaveLength(3);
  readEnded(client, [failed]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(reads.slice(3)).toEqual(["case a-1 why a-1"]);
  expect(client.getQueryData(["case", "a-1", "why", "a-1"])).toBe("failed");
  for (const each of leave) each();
  client.clear();
});
it("reads once more what changed while it was read", async () => {
  const client = new QueryClient();
  const invalidation = new Invalidation(client);
  let reads = 0;
  const queryFn = async () => {
    reads += 1;
    await new Promise((done) => setTimeout(done, 300));
    return reads;
  };
  const leave = new QueryObserver(client, { queryKey: ["case", "a-1"], queryFn }).subscribe(() => undefined);
  await vi.advanceTimersByTimeAsync(100);
  invalidation.add([["case", "a-1"]]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(reads).toBe(2);
  leave();
  client.clear();
});
