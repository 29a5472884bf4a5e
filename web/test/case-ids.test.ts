import { expect, it } from "vitest";
import { caseOfDecision, firstCaseOf } from "@/api/case-ids";

it.each([
  ["night-1a2b3c", "night-1a2b3c"],
  ["night-1a2b3c.2", "night-1a2b3c"],
  ["night-1a2b3c.2.x1", "night-1a2b3c"],
  ["night-1a2b3c/4:1:1/abort", "night-1a2b3c"],
  ["talks-soap", "talks-soap"],
  ["talks-soap.1", "talks-soap.1"],
  ["talks-soap.1.2", "talks-soap.1"],
  ["talks-soap.12/4:1:1/abort", "talks-soap.12"],
  ["talks-soap.2:7", "talks-soap.2"],
])("%s belongs to %s", (id, first) => {
  expect(firstCaseOf(id)).toBe(first);
});

it("a decision is about the case that it is named after", () => {
  expect(caseOfDecision("talks-soap.1.2/4:1:1/abort")).toBe("talks-soap.1.2");
});
