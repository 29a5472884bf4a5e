import { describe, expect, it } from "vitest";
import { isWithin } from "@/components/flow-layout";

describe("a step in a loop", () => {
  const parents = new Map([["loop", null], ["body", "loop"], ["step", "body"], ["next", null]]);
  it("stands in the loop at any depth, and in nothing else", () => {
    expect(isWithin(parents, "step", "loop")).toBe(true);
    expect(isWithin(parents, "step", "next")).toBe(false);
    expect(isWithin(parents, "loop", "step")).toBe(false);
  });
});
