/** What a proposal is told to have done, to do and to become: no more than was counted, and what adopting it does. */
import type { Schemas } from "@/api/client";
import { number, plural } from "@/components/format";
import type { Proposal } from "@/components/recovery/queries";

export type LearningSettings = Schemas["LearningSettings"];

export const KINDS: Record<Proposal["kind"], string> = { repair: "a repair", "by-hand": "as people did", stop: "not the same again", retire: "retire a rule", avoid: "elsewhere", wait: "another wait" };

const percent = (share: number) => Math.round(share * 100);

/** What its repair has come to so far. Of a place that fails, and of a rule that never helped, that is what is counted. */
export function resultWords({ kind, evidence }: Proposal): string {
  const rate = evidence.sure;
  if (!rate?.tried) return "not tried";
  if (kind === "avoid") return `failed there ${number(rate.helped)} of ${number(rate.tried)} times`;
  const counted = `helped ${number(rate.helped)} of ${number(rate.tried)} times`;
  return kind === "retire" ? counted : `${counted} (${percent(rate.low)} to ${percent(rate.high)} %)`;
}

/** Which past failures its condition holds for. That says nothing about what its repair would have come to. */
export function coverageWords({ kind, exlet, evidence }: Proposal): string {
  const { caught, of, sure } = evidence;
  if (kind === "retire") return plural(caught, "failure");
  const held = `${number(caught)} of ${plural(of, "past failure")} that it is for`;
  if (!exlet) return `${held}: nothing would have been tried`;
  return sure?.tried ? held : `${held}: whether ${exlet} would have mended them is not known`;
}

/** What adopting a proposal does, before somebody does so. */
export function adoptionWords({ kind, exlet, type }: Proposal, inForce: boolean): string {
  if (kind === "retire") return "The rule is taken out of use at once, and decides nothing from then on.";
  if (!inForce) return "It becomes a rule on trial: where it holds, that is recorded, and nothing else is done about it.";
  const what = exlet ? `${exlet} is carried out` : "nothing is tried";
  const left = type === "abort" ? " What has failed before stays as it is, until rules are applied to its cause." : "";
  return `From now on ${what} for what fails and where it holds.${left} Whether that helps shows then.`;
}

/** When a rule on trial is put in force by itself. */
export function promotionWords(after: number): string {
  if (!after) return "It stays on trial until somebody puts it in force.";
  return `It is put in force by itself after ${plural(after, "decision")} in which the same was done and helped, unless something else helped in more than a tenth as many.`;
}

/** What has become of it. */
export function stateWords(proposal: Proposal): string {
  const { state, kind, exlet, rule } = proposal;
  const which = rule === null || rule === undefined ? "the rule" : `rule ${rule}`;
  if (state === "on-trial") return `On trial as ${which}: where it holds, that is recorded, and nothing else is done. ${promotionWords(proposal.promote_after ?? 0)}`;
  if (state === "in-force" && kind === "retire") return `Adopted: ${which} is out of use.`;
  if (state === "in-force") return `In force as ${which}: ${exlet ? `${exlet} is carried out` : "nothing is tried"} for what fails since and where it holds.`;
  if (state === "retired") return `It was adopted, and ${which} was taken out of use since.`;
  if (state === "outdated") return "What it was for is handled otherwise by now.";
  return "";
}

/** What a trial has shown so far. */
export function trialWords({ trial, exlet }: Proposal): string {
  const fired = trial?.fired ?? 0;
  if (!fired) return "It has not held yet since it is on trial.";
  return `On trial it has held ${plural(fired, "time")}: in ${number(trial?.agreed ?? 0)} of them ${exlet || "nothing"} was done anyway, and helped; in ${number(trial?.otherwise ?? 0)} something else helped.`;
}

/** Who decides about what is proposed, by the settings of learning. */
export function adoptionPolicyWords(settings: LearningSettings | undefined): string {
  const by = (policy: string) => Object.entries(settings?.adopt ?? {}).filter(([, each]) => each === policy).map(([kind]) => `“${KINDS[kind as Proposal["kind"]]}”`);
  const told = [
    [by("on-trial"), "is put on trial by itself"],
    [by("in-force"), "is put in force by itself"],
  ] as const;
  const found = told.filter(([kinds]) => kinds.length).map(([kinds, what]) => `${kinds.join(", ")} ${what}`);
  if (!settings) return "";
  return found.length ? `By the administrator's settings, what is proposed as ${found.join("; ")}. All else does nothing before a person adopts it.` : "A proposal does nothing before a person adopts it.";
}

/** When something is proposed, by the settings of learning. */
export function thresholdWords(settings: LearningSettings | undefined): string {
  return `A rule is proposed where a repair that exists here is likely to help: after ${plural(settings?.failures_min ?? 3, "failure")} of one cause that nobody took up and no rule would take up now, or when people have made the same repair ${plural(settings?.by_hand_min ?? 2, "time")} and it helped. Where no repair is known to help, as against most errors of a program itself, none is proposed, however often it fails: a rule can be made from any failure.`;
}
