import { expect, test } from "vitest";
import { asCondition } from "@/components/plain-words";
import { CASE_NAMES, CASE_PLACES, JOB_NAMES, JOB_PLACES } from "@/components/where-names";

const cases = (typed: string) => asCondition(typed, CASE_NAMES, CASE_PLACES);

test("words are looked for, each of them, however they are written", () => {
  expect(cases(" NA12878  Night ")).toBe("text.contains('na12878') && text.contains('night')");
  expect(cases("it's")).toBe("text.contains('it\\'s')");
  expect(asCondition("Align", JOB_NAMES, JOB_PLACES)).toContain("item.contains('Align') || ");
});

test("a condition stays what it is", () => {
  for (const typed of ["flow == 'align'", "id.contains('x')", "status in ['failed']", "!for_person", "for_person", ""]) expect(cases(typed)).toBe(typed);
});
