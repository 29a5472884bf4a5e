import { expect, it } from "vitest";
import type { Schemas } from "@/api/client";
import { writeExactly } from "@/api/exact-json";
import { listing, problemsOf, readStarts, ROWS_MAX } from "@/pages/new-run/table-rows";

const input = (more: Partial<Schemas["Input"]> = {}) => ({ type: "", required: false, default: null, description: "", ...more }) as Schemas["Input"];
const INPUTS = { sample: input({ type: "string", required: true }), depth: input({ type: "number", default: 30 }), paired: input({ type: "boolean" }), tag: input() };

it("starts a case for each row, with what the cells mean as inputs", () => {
  const { rows, problems } = readStarts(INPUTS, "sample\tdepth\tpaired\ttag\n00123\t12345678901234567890\tyes\t1.10\nNA2\t30\t\t7\n");
  expect(problems).toEqual([]);
  expect(rows.map((row) => [row.line, writeExactly(row.values)])).toEqual([
    [2, '{"sample":"00123","depth":12345678901234567890,"paired":true,"tag":"1.10"}'],
    [3, '{"sample":"NA2","depth":30,"tag":7}'],
  ]);
});
it("says what is wrong by line and column", () => {
  const table = readStarts(INPUTS, "sample,depth,colour\n,many,red\nNA2,3,blue\n");
  expect(problemsOf(table)).toEqual([
    "The flow has no input “colour”; its inputs are: sample, depth, paired, tag.",
    "Line 2, sample: A value is needed.",
    "Line 2, depth: “many” is no number.",
  ]);
  expect(problemsOf(readStarts(INPUTS, "depth\n3"))).toEqual(["The column “sample” is missing: the flow needs it."]);
  expect(problemsOf(readStarts(INPUTS, "sample,depth\nNA1"))).toEqual(["Line 2: it has 1 of 2 columns; “depth” is missing."]);
  expect(problemsOf(readStarts(INPUTS, "sample"))).toEqual(["Below the names of the inputs there is no row."]);
  expect(problemsOf(readStarts(INPUTS, `sample\n${"x\n".repeat(ROWS_MAX + 1)}`))).toEqual([`It has ${ROWS_MAX + 1} rows; at most ${ROWS_MAX} are started at once.`]);
  expect(readStarts(INPUTS, " \n")).toEqual({ names: [], rows: [], problems: [] });
});
it("lists what was started by its ids, as long as an address has room for them", () => {
  expect(listing("night", ["night-1", "night-2"], 0)).toEqual({ where: "id in ['night-1', 'night-2']" });
  const many = Array.from({ length: 400 }, (_, at) => `a-rather-long-name-of-a-flow-${at}`);
  expect(listing("night", many, 0)).toEqual({ flow: "night", since: "between", from: "1970-01-01T00:00:00.000Z" });
});
