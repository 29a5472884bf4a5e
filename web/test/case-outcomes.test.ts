import { describe, expect, it } from "vitest";
import { openOf } from "@/components/recovery/apply-panel";
import { ruleWords } from "@/components/recovery/rule-walk";
import { titleOf } from "@/pages/case/item-repairs";
import { triedInVain } from "@/pages/case/tried-in-vain";
import { caseOutcomes } from "@/components/recovery/case-outcomes";

type Told = Parameters<typeof caseOutcomes>[0][number];

const told = (id: string, at: number, more: Partial<Told> = {}): Told => ({ id, case: id.split("/")[0] ?? "", item: "align", at, state: "done", exlet: "mkdir-then", rule: 1, result: "failed", replaced_by: "", ...more });
const nothing = { exlet: "", rule: null, result: "", state: "ignored" } as const;
const came = (decisions: Told[], asked: string[], status: Record<string, string> = {}) => caseOutcomes(decisions, new Set(asked), 100, new Map(Object.entries(status)));

describe("what came of a case that rules were applied to", () => {
  it("is followed to its end, however often it was tried", () => {
    const decisions = [told("a/4", 140, nothing), told("a/3", 130), told("a/2", 120), told("a/1!2", 110), told("a/1", 50, { ...nothing, replaced_by: "a/1!2" })];
    expect(came(decisions, ["a/1"], { a: "failed" })).toEqual([{ case: "a", state: "failed", word: "failed each time", tried: "tried 3 times with mkdir-then (rule 1)" }]);
  });
  it("is under repair only as long as the case goes on", () => {
    const decisions = [told("a/1", 50, { result: "tried-again" })];
    expect(came(decisions, ["a/1"], { a: "running" })[0]).toMatchObject({ state: "repairing", tried: "tried once with mkdir-then (rule 1)" });
    expect(came(decisions, ["a/1"], { a: "cancelled" })[0]).toMatchObject({ state: "stopped", word: "the case was cancelled" });
  });
  it("is recovered where the last try helped, also after others in vain", () => {
    expect(came([told("a/2", 120, { result: "recovered" }), told("a/1", 50)], ["a/1"])[0]).toMatchObject({ state: "done", word: "recovered", tried: "tried 2 times with mkdir-then (rule 1)" });
  });
  it("says what waits for a person, and whether anything was tried", () => {
    expect(came([told("a/1", 50, { ...nothing, state: "waiting" })], ["a/1"])[0]).toMatchObject({ state: "person", word: "waits: no rule took it up", tried: "" });
    expect(came([told("a/2", 120, { ...nothing, state: "waiting" }), told("a/1", 50)], ["a/1"])[0]?.word).toBe("did not help: waits for a person");
  });
  it("leaves out what nobody asked about, and what was done before", () => {
    expect(came([told("b/1", 120), told("a/2", 120, nothing), told("a/1", 50)], ["a/2"])).toEqual([{ case: "a", state: "failed", word: "no rule took it up", tried: "" }]);
  });
});

it("what waits for its next try does not wait for a person", () => {
  expect(openOf({ open_waiting: 1, open_failed: 0, group: { waiting: 0 } })).toEqual({ person: 0, retry: 1, failed: 0 });
  expect(openOf({ open_waiting: 3, open_failed: 2, group: { waiting: 2 } })).toEqual({ person: 2, retry: 1, failed: 2 });
});

describe("what was tried in vain", () => {
  const repair = (item: string, more: object = {}) => ({ item, type: "abort", tree: "align", rules: "night", rule: 1, exlet: "mkdir-then", state: "done", result: "failed", ordered_by: "", ...more }) as Parameters<typeof triedInVain>[0][number];
  it("is counted by rule, also where the newest failure was left as it is", () => {
    const found = triedInVain([repair("a", { exlet: "", rule: null, state: "ignored", result: "" }), repair("a"), repair("a"), repair("a", { rule: 2 })]);
    expect(found.map((each) => [each.decision.rule, each.count])).toEqual([[1, 2], [2, 1]]);
  });
  it("is nothing of what was mended in the end", () => {
    expect(triedInVain([repair("a", { result: "recovered" }), repair("a"), repair("b")]).map((each) => each.count)).toEqual([1]);
  });
  it("is told by the tree of its rule, and not called mended", () => {
    expect(ruleWords({ rules: "*", rule: 3, type: "abort", task: "*" }, "Rule")).toBe("Rule 3 for any task of the default rules");
    expect(ruleWords({ rules: "night", rule: 1, type: "timeout", task: "align" })).toBe("rule 1 for timeout of align of night");
    expect(titleOf([repair("a"), repair("a")])).toBe("What was tried in vain");
    expect(titleOf([repair("a"), repair("a", { result: "recovered" })])).toBe("What mended it");
  });
});
