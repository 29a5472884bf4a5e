import { expect, it } from "vitest";
import { differingInputs, inputsText } from "@/components/case-inputs";

const file = (name: string) => ({ $file: "ab".repeat(32), bytes: 3, name });

it("shows files and words without the names of their inputs, files before all else", () => {
  expect(inputsText({ inputs: { parts: 3, table: file("night02.csv") } }).short).toBe("night02.csv · parts=3");
  expect(inputsText({ inputs: { release: "2026.20", bad: "none" } }).short).toBe("release=2026.20 · bad=none");
  expect(inputsText({ inputs: { table: "/data/2026/night02.csv" } })).toEqual({ short: "…/night02.csv", whole: "table: /data/2026/night02.csv" });
  expect(inputsText({ inputs: { scratch: "/scratch", table: "night02.csv" } }).short).toBe("/scratch · night02.csv");
  expect(inputsText({ inputs: { tables: [file("a"), file("b")] } })).toEqual({ short: "[a, b]", whole: 'tables: ["a","b"]' });
});
it("says the name of what says nothing alone", () => {
  expect(inputsText({ inputs: { strict: true, dry: "no", memory: "300 MB" } }).short).toBe("strict=true · dry=no · memory=300 MB");
});
it("shows a few, says how many more there are, and cuts what is long", () => {
  const { short, whole } = inputsText({ inputs: { a: 1, b: 2, c: "x".repeat(80), d: true, e: null, f: "" } });
  expect(short).toBe(`a=1 · b=2 · ${"x".repeat(31)}… · 1 more`);
  expect(whole).toBe(`a: 1\nb: 2\nc: ${"x".repeat(80)}\nd: true`);
});
it("names what the list leaves out because it is large", () => {
  expect(inputsText({ inputs: {}, left_out: ["inputs.rows", "outputs.sum"] })).toEqual({ short: "rows=…", whole: "rows: large, its page has it" });
  expect(inputsText({ inputs: {} }).short).toBe("");
});
it("shows the first values of a list, and of rows their first value", () => {
  const samples = Array.from({ length: 8 }, (_, at) => `NA1287${at}`);
  expect(inputsText({ inputs: { samples } }).short).toBe("[NA12870, NA12871, NA12872, +5]");
  expect(inputsText({ inputs: { samples: [{ name: "NA1", lane: 3 }, { name: "NA2", lane: 4 }] } }).short).toBe("samples=[NA1, NA2]");
  expect(inputsText({ inputs: { texts: ["x".repeat(40), "y"] } }).short).toBe("texts=2 values");
});
it("shows what the flow has for what nobody gave only if nothing was given", () => {
  const defaults = { scratch: "/scratch", memory: "300 MB" };
  expect(inputsText({ inputs: { sample: "NA12891" }, defaults })).toEqual({ short: "NA12891", whole: "sample: NA12891\nscratch: /scratch (default)\nmemory: 300 MB (default)" });
  expect(inputsText({ inputs: {}, defaults }).short).toBe("default: /scratch · memory=300 MB");
});
it("shows what tells the cases of a flow apart, and not what all of them have", () => {
  const made = (flow: string, inputs: Record<string, unknown>, defaults = {}) => ({ flow, inputs, defaults });
  const cases = [
    made("exome", { reference: "/ref/hg38.fa", sample: "NA12891", kit: "exomeV7", depth: 30 }),
    made("exome", { reference: "/ref/hg38.fa", sample: "NA12892", kit: "exomeV6" }, { depth: 30 }),
    made("other", { reference: "/ref/hg38.fa" }),
  ];
  const differing = differingInputs(cases);
  expect(cases.map((each) => inputsText(each, differing.get(each.flow)).short)).toEqual(["NA12891 · exomeV7", "NA12892 · exomeV6", "…/hg38.fa"]);
  const alike = [made("exome", { sample: "NA1" }), made("exome", { sample: "NA1" })];
  expect(alike.map((each) => inputsText(each, differingInputs(alike).get("exome")).short)).toEqual(["NA1", "NA1"]);
});
