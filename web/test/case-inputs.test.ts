import { expect, it } from "vitest";
import { inputsText } from "@/components/case-inputs";

const file = (name: string) => ({ $file: "ab".repeat(32), bytes: 3, name });

it("names files by their names, before all else", () => {
  expect(inputsText({ inputs: { parts: 3, table: file("night02.csv") } }).short).toBe("table=night02.csv, parts=3");
  expect(inputsText({ inputs: { table: "/data/2026/night02.csv" } })).toEqual({ short: "table=…/night02.csv", whole: "table: /data/2026/night02.csv" });
  expect(inputsText({ inputs: { scratch: "/scratch", table: "night02.csv" } }).short).toBe("scratch=/scratch, table=night02.csv");
  expect(inputsText({ inputs: { tables: [file("a"), file("b")] } })).toEqual({ short: "tables=[a, b]", whole: 'tables: ["a","b"]' });
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
it("shows the first values of a list, and of rows their first value", () => {
  const samples = Array.from({ length: 8 }, (_, at) => `NA1287${at}`);
  expect(inputsText({ inputs: { samples } }).short).toBe("samples=[NA12870, NA12871, NA12872, +5]");
  expect(inputsText({ inputs: { samples: [{ name: "NA1", lane: 3 }, { name: "NA2", lane: 4 }] } }).short).toBe("samples=[NA1, NA2]");
  expect(inputsText({ inputs: { texts: ["x".repeat(40), "y"] } }).short).toBe("texts=2 values");
});
it("marks what the flow has for what nobody gave", () => {
  expect(inputsText({ inputs: { depth: 15 }, defaults: { samples: ["a", "b"], memory: "300 MB" } })).toEqual({
    short: "depth=15, memory=300 MB (default), samples=[a, b] (default)",
    whole: 'depth: 15\nsamples: ["a","b"] (default)\nmemory: 300 MB (default)',
  });
});
