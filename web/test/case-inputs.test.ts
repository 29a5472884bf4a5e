import { expect, it } from "vitest";
import { inputsText } from "@/components/case-inputs";

const file = (name: string) => ({ $file: "ab".repeat(32), bytes: 3, name });

it("names files by their names, before all else", () => {
  expect(inputsText({ inputs: { parts: 3, table: file("night02.csv") } }).short).toBe("table=night02.csv, parts=3");
  expect(inputsText({ inputs: { table: "/data/2026/night02.csv" } })).toEqual({ short: "table=…/night02.csv", whole: "table: /data/2026/night02.csv" });
  expect(inputsText({ inputs: { scratch: "/scratch", table: "night02.csv" } }).short).toBe("scratch=/scratch, table=night02.csv");
  expect(inputsText({ inputs: { tables: [file("a"), file("b")] } })).toEqual({ short: "tables=2 files", whole: 'tables: ["a","b"]' });
});
it("shows a few, says how many more there are, and cuts what is long", () => {
  const { short, whole } = inputsText({ inputs: { a: 1, b: 2, c: "x".repeat(80), d: true, e: null, f: "" } });
  expect(short).toBe(`a=1, b=2, c=${"x".repeat(31)}…, 1 more`);
  expect(whole).toBe(`a: 1\nb: 2\nc: ${"x".repeat(80)}\nd: true`);
});
it("names what the list leaves out because it is large", () => {
  expect(inputsText({ inputs: {}, left_out: ["inputs.rows", "outputs.sum"] })).toEqual({ short: "rows=…", whole: "rows: large, its page has it" });
  expect(inputsText({ inputs: {} }).short).toBe("");
});
