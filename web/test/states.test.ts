import { describe, expect, it } from "vitest";
import { caseState, mostUrgent, stateOf, wordOf } from "@/api/states";

describe("states", () => {
  it("know the words of the API", () => {
    expect(["completed", "cached", "available", "cancelled", "held"].map(stateOf)).toEqual(["done", "done", "ready", "stopped", "person"]);
  });
  it("keep a word that says more than the state", () => {
    expect(["completed", "done", "cached", "cancelled", "held", "running"].map(wordOf)).toEqual(["completed", "done", "cached", "cancelled", "for a person", "running"]);
  });
  it("say that a case with held items is for a person", () => {
    expect(caseState({ status: "running", held: ["c:work"] })).toBe("person");
    expect(caseState({ status: "running", held: [], tasks_open: 2 })).toBe("person");
    expect(caseState({ status: "failed", held: [] })).toBe("failed");
  });
  it("show the most urgent of a mixed lot", () => {
    expect(mostUrgent(["done", "failed", "running"])).toBe("failed");
  });
});
