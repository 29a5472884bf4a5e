import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { readExactly, writeExactly } from "@/api/exact-json";
import { draftOf, readDraft, readText, type Wanted } from "@/components/typed-values";

interface Row {
  type: string;
  inferred?: boolean;
  text: string;
  /** The JSON that it becomes; `null` if it is refused. */
  becomes: string | null;
}

/** The command line is told the same by tests/cli/test_values_as_written.py. */
const ROWS = JSON.parse(readFileSync(new URL("../../tests/cli/values_as_written.json", import.meta.url), "utf8")) as Row[];

function becomes(wanted: Wanted, text: string): string | null {
  const read = readText(wanted, text);
  return "problem" in read ? null : writeExactly(read.value);
}

it.each(ROWS)("a $type written as $text is what the command line makes of it", ({ text, becomes: json, ...wanted }) => {
  expect(becomes(wanted, text)).toBe(json);
});
it.each(ROWS.filter((row) => row.becomes !== null))("a $type that was given as $text is the same after it stood in a field", ({ text, becomes: json, ...wanted }) => {
  const draft = draftOf(wanted, readExactly(json ?? ""));
  const read = draft === "" ? { value: null } : readDraft(wanted, draft as string);
  expect("value" in read && writeExactly(read.value)).toBe(json);
});
it("reads what the server has written without a change", () => {
  const text = '{"id":12345678901234567890,"share":1.0,"tiny":0.00001,"names":["a\\"b",{}],"none":null,"__proto__":1}';
  expect(writeExactly(readExactly(text))).toBe(text);
  expect(writeExactly(readExactly('{"a":[1,{"b":2.0}],"c":[]}'), 2)).toBe('{\n  "a": [\n    1,\n    {\n      "b": 2.0\n    }\n  ],\n  "c": []\n}');
});
it("keeps cells of tables and lines of lists as texts where nothing else is declared", () => {
  const read = (wanted: Wanted, text: string) => {
    const found = readDraft(wanted, text);
    return "value" in found ? writeExactly(found.value) : found.problem;
  };
  expect(read({ type: "table" }, "sample,zip\nS1,00123\n1.10,true\n")).toBe('[{"sample":"S1","zip":"00123"},{"sample":"1.10","zip":"true"}]');
  expect(read({ type: "table", columns: { n: "number", ok: "boolean" } }, "s;n;ok\n1;1.10;yes\n2;;")).toBe('[{"s":"1","n":1.1,"ok":true},{"s":"2","n":null,"ok":null}]');
  expect(read({ type: "table", columns: { n: "number" } }, "s\tn\n1\tmany")).toBe("Line 2: n: “many” is no number");
  expect(read({ type: "table" }, 'a,b\n"1, 2","two\nlines"\n\n3')).toBe("Line 5: it has 1 of 2 columns; “b” is missing");
  expect(read({ type: "list" }, "00123\n1.10\n5\n\nx")).toBe('["00123","1.10",5,"x"]');
});
