import { expect, it } from "vitest";
import { isWithinSentence, withinSentence } from "@/components/action-buttons";

it("what stands for a command is written as a word of its sentence", () => {
  expect(["", "It failed. ", "; ", "runs it again; "].map(isWithinSentence)).toEqual([false, false, true, true]);
  expect(["Its cause in Failures", "The list of cases", "Teach", "Mend once"].map(withinSentence)).toEqual(["its cause in Failures", "the list of cases", "Teach", "Mend once"]);
});
