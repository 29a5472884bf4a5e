import { expect, it } from "vitest";
import type { Proposal } from "@/components/recovery/queries";
import { adoptionPolicyWords, adoptionWords, coverageWords, promotionWords, resultWords, stateWords, thresholdWords, trialWords } from "@/pages/proposals/proposal-words";

const proposal = (changed: Partial<Proposal> & { evidence?: Partial<Proposal["evidence"]> } = {}): Proposal =>
  ({ id: "p", kind: "repair", state: "open", exlet: "more-memory", type: "abort", rule: null, promote_after: 0, trial: { fired: 0, agreed: 0, otherwise: 0 }, ...changed, evidence: { caught: 3, of: 4, spoilt: 0, sure: { helped: 0, tried: 0, mean: 0.5, low: 0, high: 1 }, ...changed.evidence } }) as Proposal;
const rate = (helped: number, tried: number) => ({ helped, tried, mean: helped / tried, low: 0.3, high: 0.9 });

it("does not say of a failure that a rule holds for that it would have been mended", () => {
  expect(coverageWords(proposal())).toBe("3 of 4 past failures that it is for: whether more-memory would have mended them is not known");
  expect(coverageWords(proposal({ evidence: { sure: rate(2, 3) } as never }))).toBe("3 of 4 past failures that it is for");
  expect(coverageWords(proposal({ kind: "stop", exlet: "" }))).toContain("nothing would have been tried");
});
it("tells a rate of failures as one", () => {
  expect(resultWords(proposal())).toBe("not tried");
  expect(resultWords(proposal({ evidence: { sure: rate(2, 3) } as never }))).toBe("helped 2 of 3 times (30 to 90 %)");
  expect(resultWords(proposal({ kind: "avoid", evidence: { sure: rate(9, 10) } as never }))).toBe("failed there 9 of 10 times");
  expect(resultWords(proposal({ kind: "retire", evidence: { sure: rate(0, 7) } as never }))).toBe("helped 0 of 7 times");
});
it("says what adopting does, on trial and in force", () => {
  expect(adoptionWords(proposal(), false)).toContain("that is recorded, and nothing else is done");
  expect(adoptionWords(proposal(), true)).toContain("What has failed before stays as it is");
  expect(adoptionWords(proposal({ exlet: "" }), true)).toContain("nothing is tried");
  expect(adoptionWords(proposal({ kind: "retire" }), true)).toContain("taken out of use at once");
  expect(promotionWords(0)).toBe("It stays on trial until somebody puts it in force.");
  expect(promotionWords(10)).toContain("after 10 decisions");
});
it("says what has become of it", () => {
  expect(stateWords(proposal())).toBe("");
  expect(stateWords(proposal({ state: "on-trial", rule: 3, promote_after: 5 }))).toContain("On trial as rule 3: where it holds, that is recorded");
  expect(stateWords(proposal({ state: "in-force", rule: 3 }))).toBe("In force as rule 3: more-memory is carried out for what fails since and where it holds.");
  expect(stateWords(proposal({ state: "in-force", kind: "retire", rule: 2 }))).toBe("Adopted: rule 2 is out of use.");
  expect(trialWords(proposal())).toContain("has not held yet");
  expect(trialWords(proposal({ trial: { fired: 5, agreed: 2, otherwise: 1 } as never }))).toBe("On trial it has held 5 times: in 2 of them more-memory was done anyway, and helped; in 1 something else helped.");
});
it("says by the settings who decides and when something is proposed", () => {
  const settings = { adopt: { repair: "on-trial", avoid: "in-force" }, promote_after: 0, failures_min: 7, by_hand_min: 4, tries_min: 5 } as const;
  expect(adoptionPolicyWords({ ...settings, adopt: {} })).toBe("A proposal does nothing before a person adopts it.");
  expect(adoptionPolicyWords(settings)).toContain("“a repair” is put on trial by itself; “elsewhere” is put in force by itself");
  expect(adoptionPolicyWords(undefined)).toBe("");
  expect(thresholdWords(settings)).toContain("7 failures");
  expect(thresholdWords(settings)).toContain("4 times");
  expect(thresholdWords(settings)).toContain("Where no repair is known to help, as against most errors of a program itself, none is proposed, however often it fails");
});
