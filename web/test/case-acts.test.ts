import { afterEach, expect, it, vi } from "vitest";
import type { CaseView } from "@/api/queries";
import { CASE_ACTS, labelFor } from "@/components/case-acts";

const decision = (id: string) => ({ id: `${id}/1:1:1/abort`, case: id, group: "g-1", state: "waiting", replaced_by: null });

afterEach(() => {
  vi.unstubAllGlobals();
});

it("rules are applied to one case alone, also where a message began it", async () => {
  const skipped: unknown[] = [];
  const answer = (value: unknown) => new Response(JSON.stringify(value), { headers: { "Content-Type": "application/json" } });
  vi.stubGlobal("fetch", async (wish: Request | string, more?: RequestInit) => {
    const url = typeof wish === "string" ? wish : wish.url;
    if (url.includes("/apply")) {
      skipped.push(JSON.parse(typeof wish === "string" ? String(more?.body) : await wish.text()).skip);
      return answer({ group: "g-1", taken_up: ["talks-soap.1.3/1:1:1/abort"], left: [], refused: {} });
    }
    return answer(url.includes("case=") ? [decision("talks-soap.1.3")] : ["talks-soap.1.3", "talks-soap.2", "talks-soap.12", "night-1.2"].map(decision));
  });
  await CASE_ACTS.find((each) => each.name === "apply")?.run("talks-soap.1", "");
  expect(skipped).toEqual([["talks-soap.2", "talks-soap.12", "night-1"]]);
});

it("what failed in a case that completed all the same can be run again, and says how much that is", () => {
  const act = CASE_ACTS.find((each) => each.name === "rerun-failed")!;
  const view = (status: string, failed: number) => ({ status, counts: [{ name: "a", kind: "job", done: 4, cached: 0, running: 0, waiting: 0, failed, cancelled: 0, skipped: 0, mended: 0 }] }) as unknown as CaseView;
  expect([act.fits(view("completed", 6)), labelFor(act, view("completed", 6))]).toEqual([true, "Run again what failed (6 items)"]);
  expect([act.fits(view("failed", 1)), labelFor(act, view("failed", 1))]).toEqual([true, "Run again from what failed"]);
  expect([act.fits(view("completed", 0)), act.fits(view("running", 2))]).toEqual([false, false]);
});

it("whoever runs a case again hears that approvals are kept", () => {
  for (const name of ["rerun", "rerun-failed"]) expect(CASE_ACTS.find((act) => act.name === name)?.will(1)).toContain("an approval too, is kept");
});
