import { expect, test } from "vitest";
import { asCondition } from "@/components/plain-words";
import { hasWords } from "@/pages/case/queries";
import { CASE_NAMES, CASE_PLACES, ITEM_NAMES, ITEM_PLACES, JOB_NAMES, JOB_PLACES } from "@/components/where-names";

const cases = (typed: string) => asCondition(typed, CASE_NAMES, CASE_PLACES);

test("words are looked for, each of them, however they are written", () => {
  expect(cases(" NA12878  Night ")).toBe("text.contains('na12878') && text.contains('night')");
  expect(cases("it's")).toBe("text.contains('it\\'s')");
  expect(asCondition("Align", JOB_NAMES, JOB_PLACES)).toBe("(text.contains('align') || command.contains('Align'))");
});

test("a word that is a state asks for that state, and the others for the case", () => {
  expect(cases("failed exomeV7")).toBe("status == 'failed' && text.contains('exomev7')");
  expect(cases("Running")).toBe("status == 'running' && !for_person");
  expect(cases("for a person night")).toBe("for_person && text.contains('night')");
  expect(cases("waiting")).toBe("for_person");
  expect(cases("canceled")).toBe("status == 'cancelled'");
  expect(asCondition("failed align", ITEM_NAMES, ITEM_PLACES)).toContain("state == 'failed' && (text.contains('align')");
});

test("the text of a message is looked for, whatever it is made of", () => {
  const message = cases("cat: x.txt: No such file (exit code 1)");
  expect(message).toBe("cat: x.txt: No such file (exit code 1)".split(" ").map((word) => `text.contains('${word.toLowerCase()}')`).join(" && "));
  expect(cases("it failed: Killed!")).toBe("text.contains('it') && text.contains('failed:') && text.contains('killed!')");
  expect(cases("the job failed twice")).toContain("(status == 'failed' || text.contains('failed'))");
});

test("a condition stays what it is", () => {
  for (const typed of ["flow == 'align'", "id.contains('x')", "status in ['failed']", "!for_person", "for_person", "(for_person)", "city=Bern", ""]) expect(cases(typed)).toBe(typed);
});

test("an item is found that has each of the words", () => {
  expect(hasWords(" S17  it's ")).toBe("text.contains('s17') && text.contains('it\\'s')");
  expect(hasWords("  ")).toBeUndefined();
});
