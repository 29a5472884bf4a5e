import { expect, test } from "vitest";
import { mayWords } from "@/pages/administration/token-words";

test("before a token is made it is said what it lets somebody do", () => {
  expect(mayWords([], [], "")).toBe("");
  expect(mayWords([], ["curator"], "")).toBe("may answer user tasks for curator, and look");
  expect(mayWords(["user"], ["curator"], "")).toBe("may look, deploy flows, start cases and mend them, may answer user tasks for curator");
  expect(mayWords([], [], "operator of the project red")).toBe("is operator of the project red");
});
