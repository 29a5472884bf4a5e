import { describe, expect, it } from "vitest";
import { refusalWords, tryLimitFor } from "@/pages/teach/condition-advice";
import { ineffectiveRules } from "@/pages/teach/existing-rules";

describe("the bound that is offered", () => {
  it("is the usual one where the case at hand is within it", () => {
    expect(tryLimitFor("job.generation <= 3", { job: { generation: 3 } })).toEqual({ condition: "job.generation <= 3", label: "End it after three tries", note: "" });
    expect(tryLimitFor("job.generation <= 3", undefined).condition).toBe("job.generation <= 3");
  });
  it("holds for a case that is beyond that, which is said", () => {
    const bound = tryLimitFor("job.generation <= 3", { job: { generation: 4 } });
    expect([bound.condition, bound.note]).toEqual(["job.generation <= 6", "The case at hand is beyond the usual bound, job.generation <= 3: there job.generation is 4 already."]);
    expect(tryLimitFor("item.attempts < 4", { item: { attempts: 4 } }).condition).toBe("item.attempts < 7");
  });
});

describe("why a rule cannot be saved", () => {
  const context = { job: { generation: 4 } };
  it("is that it does not hold for the case at hand, and where", () => {
    expect(refusalWords("the condition does not hold for the case at hand", "fault.exit_code == 7 && job.generation <= 3", context)).toBe("The condition does not hold for the case at hand: job.generation is 4 there. Change it, or choose another case.");
  });
  it("is a cornerstone only where one would break", () => {
    expect(refusalWords("the cornerstone of rule 1 would get another conclusion", "a == 1", context)).toContain("It would break a cornerstone");
    expect(refusalWords("there is an exlet `x` already; give the new one another name", "a == 1", context)).toBe("There is an exlet `x` already; give the new one another name.");
  });
});

it("rules that failed each time are told, and no others", () => {
  const handled = { rules: "night", rule: 1, tree: "align", exlet: "again", passive: false, count: 3, results: { failed: 3 } };
  const found = ineffectiveRules({ handled: [handled, { ...handled, rule: 2, results: { failed: 2, recovered: 1 } }, { ...handled, rule: 3, passive: true }, { ...handled, rules: "" }] } as never);
  expect(found.map((each) => each.rule)).toEqual([1]);
});
