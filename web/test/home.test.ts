import { expect, it } from "vitest";
import { cameOf } from "@/pages/home/panels";
import { runningNote } from "@/pages/home/tiles";

it.each([
  [{ count: 2, run_again: 2, settled: 0 }, ["run again"]],
  [{ count: 2, run_again: 0, settled: 2 }, ["settled"]],
  [{ count: 2, run_again: 1, settled: 1 }, ["1 run again", "1 settled"]],
  [{ count: 3, run_again: 0, settled: 0 }, ["handled"]],
  [{ count: 4, run_again: 1, settled: 0 }, ["1 run again", "3 handled"]],
])("what came of failures is said in its words", (failure, words) => {
  expect(cameOf(failure)).toEqual(words);
});

it("those that wait for a person are said with those that run, and not as more than were started", () => {
  expect(runningNote(6, 1)).toBe("and 1 that waits for a person; 6 cases started in the last 24 hours");
  expect(runningNote(1, 2)).toBe("and 2 that wait for a person; 1 case started in the last 24 hours");
  expect(runningNote(6, 0)).toBe("6 cases started in the last 24 hours");
});
