import { expect, it } from "vitest";
import { readExactly, writeExactly } from "@/api/exact-json";
import { cellDraft, readCellDraft } from "@/components/cell-values";
import { separated, withCell } from "@/components/table-texts";
import { readStarts } from "@/pages/new-run/table-rows";

it("a value of a cell is what it was if nobody changes how it is written", () => {
  const values = ["a", "1.10", " a ", "", 3, true, ["a", "b"], ["1.10", "7", 7, 1.5, true, null], ["Smith, J."], [""], ["[x"], ["a\nb"], [], [[1], 2], { ra: 279.2, at: [1] }, readExactly("[1.0, 12345678901234567890]")];
  for (const value of values) {
    const read = readCellDraft(value, {}, "x", cellDraft(value));
    expect("value" in read && writeExactly(read.value)).toBe(writeExactly(value));
  }
  expect(cellDraft([0.03, "m31"])).toBe("0.03\nm31");
});

it("what is written in a cell is of the kind that was there", () => {
  expect(readCellDraft(["a"], {}, "x", "a\nb\n7")).toEqual({ value: ["a", "b", 7] });
  expect(readCellDraft("7", {}, "x", "8")).toEqual({ value: "8" });
  expect(readCellDraft(7, {}, "x", "many")).toEqual({ problem: "“many” is no number" });
  expect(readCellDraft({ a: 1 }, {}, "x", '{"a": 2}')).toEqual({ value: { a: 2 } });
  expect(readCellDraft({ a: 1 }, {}, "x", '{"a": ')).toHaveProperty("problem");
  expect(readCellDraft(null, { x: "number" }, "x", "8")).toEqual({ value: 8 });
});

it("a cell of a table of starts is changed, and no other", () => {
  const text = 'sample,fields,note\n"NA,1","[""m31"", ""a, b""]", x \n,"m31\nm33",""\n"","",""\n';
  const before = separated(text);
  const after = separated(withCell(text, before.rows[1]?.line ?? 0, "note", 'he said "no", twice'));
  expect(after.names).toEqual(before.names);
  expect(after.rows.map((row) => row.cells)).toEqual(before.rows.map((row, at) => (at === 1 ? [...row.cells.slice(0, 2), 'he said "no", twice'] : row.cells)));
});

it("a list in a cell of a sheet is written by commas, by lines or in JSON", () => {
  const inputs = { fields: { type: "list", required: false, default: null, description: "" } } as never;
  const table = readStarts(inputs, 'fields\n"m31, m33"\n"m31\nm33"\n"[""a, b""]"\n"[""a"""\n');
  expect(table.rows.map((row) => row.values["fields"])).toEqual([["m31", "m33"], ["m31", "m33"], ["a, b"], undefined]);
  expect(Object.keys(table.rows[3]?.problems ?? {})).toEqual(["fields"]);
});
