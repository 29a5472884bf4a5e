import { expect, it } from "vitest";
import { cameOf } from "@/pages/home/panels";

it.each([
  [{ count: 2, run_again: 2, settled: 0 }, ["run again"]],
  [{ count: 2, run_again: 0, settled: 2 }, ["settled"]],
  [{ count: 2, run_again: 1, settled: 1 }, ["1 run again", "1 settled"]],
  [{ count: 3, run_again: 0, settled: 0 }, ["handled"]],
  [{ count: 4, run_again: 1, settled: 0 }, ["1 run again", "3 handled"]],
])("what came of failures is said in its words", (failure, words) => {
  expect(cameOf(failure)).toEqual(words);
});
