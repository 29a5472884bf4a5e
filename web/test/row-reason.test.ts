import { expect, it } from "vitest";
import { lastLineFirst } from "@/components/row-reason";
import { isApproval, isYesOrNo, withoutYesOrNo } from "@/components/typed-values";

it("a reason begins with what a job said last", () => {
  expect(lastLineFirst("it ended with exit code 17; its last line: align: no folder /scratch/b")).toBe("align: no folder /scratch/b (exit code 17)");
  expect(lastLineFirst("no pilot can take it")).toBe("no pilot can take it");
});

it("a task is an approval if all that it asks for is one yes or no", () => {
  expect(isApproval({ title: "Release it?", fields: {} })).toBe(true);
  expect(isApproval({ title: "Sign off", fields: { approved: "yes or no: may it go out?" } })).toBe(true);
  expect(isApproval({ title: "Clean the lens", fields: {} })).toBe(false);
  expect(isApproval({ title: "Release it?", fields: { approved: "yes or no", note: "why" } })).toBe(false);
});

it("a question is asked without the words that say how it is answered", () => {
  expect(["yes or no: may it go out?", "Yes/No", "bool (is it sharp)", "true or false, again"].map(withoutYesOrNo)).toEqual(["may it go out?", "", "is it sharp)", "again"]);
  expect(["yes or no", "YES-NO; now", "yes or nobody", "a note"].map(isYesOrNo)).toEqual([true, true, false, false]);
});
