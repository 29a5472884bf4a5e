import { describe, expect, it } from "vitest";
import { failingLine, readTerms, splitTerms, steadyPart, withTerm, writeTerm } from "@/components/recovery/conditions";
import { flowOf, newStep, rootsRead, stepsOf } from "@/components/recovery/exlets";
import type { RuleTree } from "@/components/recovery/queries";
import { walkTree } from "@/components/recovery/rule-walk";
import { differing } from "@/components/recovery/values";

describe("conditions", () => {
  it("are split where no bracket and no text is open", () => {
    expect(splitTerms('a == 1 && b.contains("x && y") && (c || d)')).toEqual(["a == 1", 'b.contains("x && y")', "(c || d)"]);
    expect(splitTerms("a || b && c")).toEqual(["a || b && c"]);
  });
  it("are read as parts and written again", () => {
    const condition = 'fault.exit_code >= 7 && job.log_tail.contains("no \\"token\\"") && has(case.data.x) && item.name in ["a", "b"]';
    const terms = readTerms(condition);
    expect(terms.map((each) => each.operator)).toEqual([">=", "contains", "is there", "in"]);
    expect(terms.map((each) => writeTerm(each.path ?? "", each.operator ?? "==", each.literal ?? ""))).toEqual(terms.map((each) => each.text));
  });
  it("do not get the same part twice", () => {
    expect(withTerm("a == 1", "a == 1")).toBe("a == 1");
    expect(withTerm("", "a == 1")).toBe("a == 1");
  });
  it("find the failing line, and what other cases have of it", () => {
    expect(failingLine("one\nERROR reset by a-17\nlater", "ERROR reset by a-17 (exit code 7)")).toBe(1);
    expect(steadyPart("ERROR connection reset by archive-17")).toBe("ERROR connection reset by");
  });
});

it("the walk of a tree tells how often each rule held", () => {
  const rules = { "1": { id: 1, condition: "a", on_true: 2, on_false: 3 }, "2": { id: 2, condition: "b" }, "3": { id: 3, condition: "c" } };
  const decided: Record<number, number> = { 1: 4, 2: 3, 3: 5 };
  const walked = walkTree({ root: 1, rules } as unknown as RuleTree, (rule) => decided[rule] ?? 0);
  expect(walked.map((each) => [each.rule.id, each.depth, each.asked, each.held])).toEqual([[1, 0, 12, 7], [2, 1, 7, 3], [3, 0, 5, 5]]);
});

it("an exlet that is composed is read again as its steps, with the roots that it reads as variables", () => {
  const steps = [newStep("wait", { duration: 1000 }), newStep("re-submit", { resources: { memory_bytes: "${{ job.memory_bytes * 2 }}" } })];
  const flow = flowOf({ name: "more", description: "", steps });
  expect(rootsRead(steps)).toEqual(["job"]);
  expect(stepsOf(flow)?.map((each) => [each.do, each.settings])).toEqual(steps.map((each) => [each.do, each.settings]));
});

it("only what differs is compared", () => {
  expect(differing({ a: 1, b: { c: 2 } }, { a: 1, b: { c: 3 } })).toEqual([{ path: "b.c", left: 2, right: 3 }]);
});
