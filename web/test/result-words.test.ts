import { expect, it } from "vitest";
import { cameOf, helpedText, triedAndHelped } from "@/components/recovery/decision-words";
import type { DecisionView } from "@/components/recovery/queries";

const came = (more: Partial<DecisionView>) => cameOf({ state: "done", result: "", note: "", ...more } as DecisionView);

it("counts as tried only what is known to have helped or not", () => {
  expect(triedAndHelped({ count: 6, results: { recovered: 1, completed: 1, failed: 2, "tried-again": 1, restarted: 1 } })).toEqual({ tried: 4, helped: 2 });
  expect(helpedText({ count: 2, results: { recovered: 1, failed: 1 } })).toBe("1/2");
  expect(helpedText({ count: 1, results: { restarted: 1 } })).toBe("begun again");
  expect(helpedText({ count: 1, results: { "tried-again": 1 } })).toBe("tried again, not over yet");
  expect(helpedText({ count: 0, results: {} })).toBe("0/0");
});
it("says what came of a repair in the same words everywhere", () => {
  expect(came({ result: "failed", note: "no disk" })).toBe("tried in vain (no disk)");
  expect(came({ result: "restarted" })).toBe("begun again");
  expect(came({ result: "recovered" })).toBe("recovered");
});
