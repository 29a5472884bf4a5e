import { expect, test } from "vitest";
import { asksFor, needsOf } from "@/pages/jobs/needs";
import { mergedRows } from "@/pages/case/timeline-rows";
import { describeWords } from "@/components/state-badge";

const row = (item: string, state: string) => ({ item, state, name: item, kind: "job", element: "", job: null, bars: [] });

test("rows that changed stay in their places, and new ones come last", () => {
  const merged = mergedRows([row("a", "completed"), row("b", "running")], [row("b", "completed"), row("c", "running")]);
  expect(merged.map((each) => `${each.item} ${each.state}`)).toEqual(["a completed", "b completed", "c running"]);
});

test("a skipped step is called skipped, not stopped", () => {
  expect(describeWords({ skipped: 1 })).toBe("1 skipped");
  expect(describeWords({ completed: 2, cancelled: 1 })).toBe("2 completed, 1 cancelled");
});

test("jobs of like needs are one lot", () => {
  const job = (cpus: number, limit: string) => ({ spec: { item: "x", resources: { cpus }, limits: { named: limit ? [[limit, 1] as [string, number]] : [] } } }) as never;
  expect(needsOf(job(1, ""))).toBe(needsOf(job(1, "")));
  expect(needsOf(job(1, ""))).not.toBe(needsOf(job(1, "licence")));
  expect(needsOf(job(1, ""))).not.toBe(needsOf(job(2, "")));
});

test("what few jobs ask for comes before the one CPU that every job has", () => {
  const job = (resources: object) => ({ spec: { item: "x", resources } }) as never;
  expect(asksFor(job({ gpus: 4, memory_bytes: 900e9 }))).toBe("4 GPUs, 900 GB, 1 CPU");
  expect(asksFor(job({ cpus: 8, gpus: 1 }))).toBe("8 CPUs, 1 GPU");
});
