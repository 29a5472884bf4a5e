import { describe, expect, it } from "vitest";
import { writeExactly } from "@/api/exact-json";
import { entriesIn, looksLikeTable, readTable, separatorOf, type Columns } from "@/components/table-texts";
import { readDraft } from "@/components/typed-values";

const flawsOf = (text: string, columns = {}, file = "") => readTable(text, columns, file).flaws.map((each) => `${each.line}: ${each.message}`);

describe("a sheet of samples", () => {
  it("becomes one entry a line, whose cells are texts", () => {
    expect(readTable("sample,depth\r\ns1, 007\n\n s2 ,1.10\n").entries).toEqual([{ sample: "s1", depth: "007" }, { sample: "s2", depth: "1.10" }]);
  });
  it("has what the flow declares in its columns", () => {
    const columns = { depth: "number", paired: "boolean", reads: "file" };
    expect(readTable("sample,depth,paired,reads\ns1,30,yes,a.fq\ns2,,No,", columns).entries).toEqual([
      { sample: "s1", depth: 30, paired: true, reads: "a.fq" },
      { sample: "s2", depth: null, paired: false, reads: null },
    ]);
  });
  it("may have separators, line breaks and quotation marks in a cell", () => {
    expect(readTable('a,b\n"1, 2","say ""hi""\nthere"\n').entries).toEqual([{ a: "1, 2", b: 'say "hi"\nthere' }]);
    expect(flawsOf('a,b\n"x\ny",1\nz')).toEqual(["4: it has 1 of 2 columns; “b” is missing"]);
  });
  it("is separated by what its ending or its first line has", () => {
    expect([separatorOf("a;b"), separatorOf("a,b;c"), separatorOf("a\tb"), separatorOf("a,b", "x.TSV"), separatorOf("a\tb", "x.csv")]).toEqual([";", ",", "\t", "\t", ","]);
    expect(readTable("\ufeffa;b\n1;2").entries).toEqual([{ a: "1", b: "2" }]);
  });
});

it.each([
  ["", ["1: the table is empty; its first line has the names of its columns"]],
  ["a,b", ["1: the table has no rows"]],
  ["a,,c\n1,2,3", ["1: column 2 has no name; the first line has the names of the columns"]],
  ["a,b,a\n1,2,3", ["1: column 3 is called “a”, as column 1 is"]],
  ["a,b\n1\n1,2,3\n1,2", ["2: it has 1 of 2 columns; “b” is missing", "3: it has 3 columns, and the first line names 2; put a value with the separator in quotation marks"]],
  ['a,b\n1,"2', ["2: a quotation mark is opened here and never closed"]],
  ['a,b\n1,"2"x', ['2: after a closing quotation mark stands "x", and not the next separator']],
])("says of %j what is wrong, and in which line", (text, flaws) => {
  expect(flawsOf(text)).toEqual(flaws);
});

it("says which cell is not what its column has", () => {
  expect(flawsOf("n,ok\n1,yes\nx,maybe\n1e400,no", { n: "number", ok: "boolean", k: "number" })).toEqual(["1: there is no column “k”", "3: column n: “x” is no number", "3: column ok: “maybe” is neither yes nor no", "4: column n: 1e400 has more digits than a number keeps"]);
  expect(flawsOf("a\tb\n1\t2", {}, "x.csv")).toEqual(["1: the columns are separated by tabs; such a table ends in .tsv"]);
});

it("knows a list of maps, and lines that could be a table, from what is neither", () => {
  expect(entriesIn('[{"a": 1}]')).toEqual([{ a: 1 }]);
  expect(["[1]", "[1.0]", "[]", "[{", "a,b"].map(entriesIn)).toEqual([null, null, null, null, null]);
  expect([looksLikeTable("a,b\n1,2"), looksLikeTable("ada\ngrace"), looksLikeTable("a,b"), looksLikeTable("a,b\n1"), looksLikeTable('["a","b"]')]).toEqual([true, false, false, false, false]);
});

it.each([
  ["", "007", '"007"'],
  ["string", "1e400", '"1e400"'],
  ["string", "", '""'],
  ["number", "", "null"],
  ["number", "1.10", "1.1"],
  ["number", "1.0", "1.0"],
  ["number", "1e5", "100000.0"],
  ["number", "-0.0", "-0.0"],
  ["number", "12345678901234567890", "12345678901234567890"],
  ["number", '" 5 "', "5"],
  ["number", '" "', "null"],
  ["number", "1e400", "1e400 has more digits than a number keeps"],
  ["number", "18446744073709551616", "18446744073709551616 has more digits than a number keeps"],
  ["number", "007", "“007” is no number"],
  ["number", "NaN", "“NaN” is no number"],
  ["boolean", "", "null"],
  ["boolean", '" Yes"', "true"],
  ["boolean", "OFF", "false"],
  ["boolean", "t", "“t” is neither yes nor no"],
  ["file", "", "null"],
  ["file", "a b.fq", '"a b.fq"'],
])("a cell of a %s column, %s, is the same where lines are taken as a table and where they stand in a field", (kind, cell, becomes) => {
  const text = `c,d\n${cell},x`;
  const columns: Columns = kind ? { c: kind } : {};
  const taken = readTable(text, columns);
  const written = readDraft({ type: "table", columns }, text);
  expect(taken.flaws[0]?.message.replace("column c: ", "") ?? writeExactly(taken.entries[0]?.["c"])).toBe(becomes);
  expect("problem" in written ? written.problem.replace("Line 2: c: ", "") : writeExactly((written.value as Record<string, unknown>[])[0]?.["c"])).toBe(becomes);
});

it("shows entries with their numbers as they stand in the text", () => {
  expect(writeExactly(entriesIn('[{"id": 12345678901234567890, "share": 1.0}]'))).toBe('[{"id":12345678901234567890,"share":1.0}]');
});
