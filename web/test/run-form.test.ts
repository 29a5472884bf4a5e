import { describe, expect, it } from "vitest";
import { becomesOf, chosenBefore } from "@/pages/new-run/run-form";

describe("a case whose inputs another one begins with", () => {
  const view = { id: "night-7f3k", ended_at: 0 };
  it("becomes what is chosen below", () => {
    expect(becomesOf(view, { isHeld: true, mayCancel: true, cancels: false })).toBe("night-7f3k stays held: it waits for a person, unless you have it cancelled below.");
    expect(becomesOf(view, { isHeld: false, mayCancel: true, cancels: true })).toBe("night-7f3k is cancelled when the new case has started.");
    expect(becomesOf(view, { isHeld: false, mayCancel: false, cancels: false })).toBe("night-7f3k stays as it is and goes on waiting.");
  });
  it("stays as it is once it is over", () => {
    expect(becomesOf({ ...view, ended_at: 1 }, { isHeld: false, mayCancel: true, cancels: true })).toBe("night-7f3k stays as it is.");
  });
});

it("does what its flow says about failures, and tells what was chosen for the earlier case", () => {
  expect(chosenBefore({ id: "night-7f3k", on_unhandled: "fail" })).toContain("For night-7f3k somebody had chosen “Fail the case”");
  expect(chosenBefore({ id: "night-7f3k", on_unhandled: "" })).toBe("");
});
