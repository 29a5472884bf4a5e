import { expect, it } from "vitest";
import { cellsOf, fileAddress, filesIn } from "@/pages/case/files";

const digest = "a".repeat(64);

it("finds stored files wherever they stand in a value", () => {
  const value = { report: { $file: digest, name: "r.json", bytes: 3 }, parts: [{ $file: digest, name: "p", bytes: 1 }], n: 4 };
  expect(filesIn(value).map((each) => each.path)).toEqual(["report", "parts[0]"]);
});
it("reads cells in quotation marks", () => {
  expect(cellsOf('a,"b, ""c""",d', ",")).toEqual(["a", 'b, "c"', "d"]);
});

it("a file is asked for as one of its case", () => {
  expect(fileAddress({ sha256: "a".repeat(64), bytes: 1, name: "t" }, "c-1.x1")).toBe(`/api/v1/files/${"a".repeat(64)}?of=c-1.x1`);
});
