import { expect, it } from "vitest";
import type { DecisionView } from "@/components/recovery/queries";
import { isTaught, newestOfCauses } from "@/pages/case/to-teach";

const failure = (id: string, group: string, more: object = {}) => ({ id, group, case: "night-1", state: "waiting", handling: "waiting", replaced_by: "", result: "", exlet: "", rules: "", rule: null, trials: [], ...more }) as unknown as DecisionView;
const ids = (found: DecisionView[]) => found.map((each) => each.id);

it("names the newest failure of each cause, and first what nobody has taken up", () => {
  const tried = { state: "failed", handling: "handled", exlet: "begin-again", result: "failed", rules: "night", rule: 3 };
  const all = [failure("5", "disk", tried), failure("4", "stars"), failure("3", "stars"), failure("2", "memory"), failure("1", "net", { result: "recovered" })];
  expect(ids(newestOfCauses(all, false))).toEqual(["4", "2", "5"]);
  expect(ids(newestOfCauses([failure("2", "a", { replaced_by: "3" }), failure("1", "b", { handling: "run-again" })], true))).toEqual([]);
  const settled = [failure("1", "a", { handling: "settled" })];
  expect([newestOfCauses(settled, false).length, newestOfCauses(settled, true).length]).toEqual([0, 1]);
});
it("takes a cause as taught where a rule holds that did not decide it then", () => {
  const said = (rule: number, exlet = "begin-again") => ({ conclusion: { rules: "night", rule, exlet }, trials: [] }) as unknown as Parameters<typeof isTaught>[1];
  const waits = failure("1", "a");
  expect(isTaught(waits, undefined)).toBe(false);
  expect(isTaught(waits, { conclusion: null, trials: [] })).toBe(false);
  expect(isTaught(waits, said(1))).toBe(true);
  expect(isTaught(waits, said(0, ""))).toBe(false);
  expect(isTaught(failure("2", "a", { rules: "night", rule: 1, exlet: "begin-again" }), said(1))).toBe(false);
  expect(isTaught(waits, { conclusion: null, trials: [{ rules: "night", rule: 2, exlet: "begin-again" }] as DecisionView["trials"] })).toBe(true);
});
