import { expect, it } from "vitest";
import { barOf, failedText, itemCount, itemsBegun, progressOf } from "@/components/case-progress";

const none = { name: "a", kind: "job", done: 0, running: 0, waiting: 0, failed: 0, cancelled: 0, mended: 0, cached: 0, skipped: 0 };

it("counts what is done of all that is to be done", () => {
  const view = { status: "running" as const, to_come: 2, counts: [{ ...none, done: 1, cached: 1, mended: 1 }, { ...none, running: 1, failed: 1 }, { ...none, skipped: 1 }] };
  const { done, all, words } = progressOf(view);
  expect([done, all, itemCount(view), itemsBegun(view)]).toEqual([2, 7, 5, "5 of 7"]);
  expect(words).toBe("2 of 7 items completed: 1 running, 1 failed, 1 skipped, 2 not begun. Counted are jobs, user tasks and called flows, each turn of a loop for itself. A loop that has not begun counts as one.");
});
it("says of a case that is over what never began", () => {
  expect(progressOf({ status: "failed", to_come: 1, counts: [{ ...none, failed: 1 }] }).words).toContain("0 of 2 items completed: 1 failed, 1 never begun.");
});
it("shows nothing of a case that is over as running, before its new counts are there", () => {
  const view = { status: "failed" as const, to_come: 0, counts: [{ ...none, done: 2, running: 1, waiting: 1, failed: 1 }] };
  expect(progressOf(view).short).toBe("2 of 5 items completed: 2 ended with the case, 1 failed");
  expect(barOf(view)).toEqual({ counts: { done: 2, running: 0, waiting: 0, failed: 1, stopped: 0 }, rest: 2 });
});
it("says how many items failed where the case says nothing of it", () => {
  const counts = [{ ...none, done: 34, failed: 6 }];
  expect(failedText({ status: "completed", to_come: 0, counts })).toBe("6 of 40 items failed");
  expect(failedText({ status: "running", to_come: 2, counts })).toBe("");
  expect(failedText({ status: "failed", to_come: 0, counts })).toBe("");
  expect(failedText({ status: "completed", to_come: 0, counts: [{ ...none, done: 1 }] })).toBe("");
});
