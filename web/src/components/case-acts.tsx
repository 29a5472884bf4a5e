/** What can be done with cases: one table for the page of a case and for bulk acts, with what each will do. */
import type { QueryClient } from "@tanstack/react-query";
import { firstCaseOf } from "@/api/case-ids";
import { api, ask, requestJson, type Schemas } from "@/api/client";
import type { CaseView } from "@/api/queries";
import type { State } from "@/api/states";
import { caseCounts } from "./case-progress";
import { plural } from "./format";
import { leftWords } from "./recovery/queries";

export type CaseActName = "cancel" | "suspend" | "resume" | "try-again" | "rerun" | "rerun-failed" | "rerun-anew" | "apply";

export interface CaseAct {
  name: CaseActName;
  label: string;
  /** What it is called for a case of which that says more. */
  labelOf?: (view: CaseView) => string | undefined;
  /** The operation of the API, which `me` may or may not list. */
  operation: string;
  danger?: boolean;
  /** One case after the other: they may share what is done. */
  oneByOne?: boolean;
  fits: (view: CaseView) => boolean;
  why: string;
  will: (count: number) => string;
  /** What the button says that does it: `Cancel 2 cases`. */
  asks: (cases: string) => string;
  /** What is said when it is done: `2 cases are being cancelled`. */
  did: (count: number) => string;
  /** How a case stands for which it is done. */
  then: { state: State; word: string };
  run: (id: string, reason: string) => Promise<string>;
}

type Decision = Schemas["DecisionView"];
const OPEN = new Set(["waiting", "ignored", "passive", "failed"]);
const MEMBERS_MAX = 1000;
const path = (id: string) => ({ params: { path: { case: id } } });

/** The rules are asked for a whole cause, so the other cases of that cause are left out by name. */
async function applyTo(id: string): Promise<string> {
  const own = await requestJson<Decision[]>("/api/v1/decisions", { query: { case: id, limit: 100 } });
  const groups = new Set(own.filter((each) => !each.replaced_by && each.group && OPEN.has(each.state)).map((each) => each.group));
  const its = new Set([id, ...own.map((each) => each.case)].map(firstCaseOf));
  let taken = 0;
  const whyLeft: Schemas["ApplyResult"]["why_left"] = {};
  for (const group of groups) {
    const members = await requestJson<Decision[]>("/api/v1/decisions", { query: { group, limit: MEMBERS_MAX } });
    if (members.length >= MEMBERS_MAX) throw new Error("its cause has too many failures to leave the others out; apply the rules on the page of the cause");
    const skip = [...new Set(members.map((each) => firstCaseOf(each.case)))].filter((each) => !its.has(each));
    const done = await requestJson<Schemas["ApplyResult"]>(`/api/v1/failures/${encodeURIComponent(group)}/apply`, { method: "POST", body: { skip } });
    const refused = Object.values(done.refused)[0];
    if (refused) throw new Error(refused);
    taken += done.taken_up.length;
    Object.assign(whyLeft, done.why_left);
  }
  if (!taken && Object.values(whyLeft).some((each) => each !== "no-rule")) throw new Error(`it stays as it is: ${leftWords({ why_left: whyLeft })}`);
  if (!taken) throw new Error(groups.size ? "no rule takes it up: teach one on the page of its cause" : "nothing in it waits for a rule");
  return "a rule takes it up";
}

const live = (view: CaseView) => view.status === "running" || view.status === "suspended";
const cases = (count: number) => (count === 1 ? "the case" : plural(count, "case"));

/** What both ways to run a case again have in common: the inputs and the version of the flow, and what becomes of the old case. */
const anew = (count: number) => (count === 1 ? "A new case starts, with the same inputs and the same version of the flow." : `${plural(count, "new case", "new cases")} start, each with the inputs and the version of the flow of the old one.`);
const stays = (count: number) => (count === 1 ? "The old case stays in the list as it is." : "The old cases stay in the list as they are.");

/** An approval would otherwise be thought to be asked for anew. */
const ANSWERS = "What people have answered, an approval too, is kept unless something runs anew before it.";

export const CASE_ACTS: readonly CaseAct[] = [
  {
    name: "suspend",
    label: "Suspend",
    operation: "suspend",
    fits: (view) => view.status === "running",
    why: "it does not run",
    will: (count) => `Nothing new is started in ${cases(count)}. Jobs that run are stopped where they are, and go on when somebody resumes.`,
    asks: (cases) => `Suspend ${cases}`,
    did: (count) => `${plural(count, "case is", "cases are")} being suspended`,
    then: { state: "stopped", word: "being suspended" },
    run: async (id) => {
      await ask(api.POST("/api/v1/cases/{case}/suspend", { ...path(id), body: {} }));
      return "suspended";
    },
  },
  {
    name: "resume",
    label: "Resume",
    operation: "resume",
    fits: (view) => view.status === "suspended" || Boolean(view.stopped) || view.holds.length > 0,
    why: "nobody suspends it",
    will: (count) => `What was suspended in ${cases(count)} goes on.`,
    asks: (cases) => `Resume ${cases}`,
    did: (count) => plural(count, "case goes on", "cases go on"),
    then: { state: "running", word: "goes on" },
    run: async (id) => {
      await ask(api.POST("/api/v1/cases/{case}/resume", { ...path(id), body: {} }));
      return "resumed";
    },
  },
  {
    name: "try-again",
    label: "Try again",
    operation: "resume",
    fits: (view) => view.held.length > 0,
    why: "nothing in it waits for a person",
    will: (count) => `What failed in ${cases(count)}, and waits for a person, is tried again as it is; then the case goes on.`,
    asks: (cases) => `Try ${cases} again`,
    did: (count) => `What failed in ${plural(count, "case")} is tried again`,
    then: { state: "running", word: "tried again" },
    run: async (id) => {
      await ask(api.POST("/api/v1/cases/{case}/resume", { ...path(id), body: {} }));
      return "tried again";
    },
  },
  {
    name: "rerun",
    label: "Run again",
    operation: "rerun",
    fits: (view) => !live(view),
    why: "it has not ended",
    will: (count) => `${anew(count)} Results of jobs that have not changed are taken from the cache. ${ANSWERS} ${stays(count)}`,
    asks: (cases) => `Run ${cases} again`,
    did: (count) => `${plural(count, "case is", "cases are")} run again`,
    then: { state: "running", word: "runs again as" },
    run: async (id) => {
      const made = await ask(api.POST("/api/v1/cases/{case}/rerun", { ...path(id), body: {} }));
      return made.id;
    },
  },
  {
    name: "rerun-failed",
    label: "Run again from what failed",
    operation: "rerun",
    labelOf: (view) => (view.status === "completed" ? `Run again what failed (${plural(caseCounts(view).failed, "item")})` : undefined),
    fits: (view) => view.status === "failed" || (view.status === "completed" && caseCounts(view).failed > 0),
    why: "nothing in it has failed",
    will: (count) => `${anew(count)} What was done is taken over as it is; only what failed, what uses the results of that, and what did not begin, is run. ${ANSWERS} ${stays(count)}`,
    asks: (cases) => `Run ${cases} again from what failed`,
    did: (count) => `${plural(count, "case is", "cases are")} run again from what failed`,
    then: { state: "running", word: "runs again as" },
    run: async (id) => {
      const made = await ask(api.POST("/api/v1/cases/{case}/rerun", { ...path(id), body: { from_failed: true } }));
      return made.id;
    },
  },
  {
    name: "rerun-anew",
    label: "Run all of it anew",
    operation: "rerun",
    fits: (view) => !live(view),
    why: "it has not ended",
    will: (count) => `${anew(count)} Nothing is taken over from earlier results: every job runs, and people are asked again. ${stays(count)}`,
    asks: (cases) => `Run all of ${cases} anew`,
    did: (count) => `${plural(count, "case is", "cases are")} run anew`,
    then: { state: "running", word: "runs anew as" },
    run: async (id) => {
      const made = await ask(api.POST("/api/v1/cases/{case}/rerun", { ...path(id), body: { cache: "none" } }));
      return made.id;
    },
  },
  {
    name: "apply",
    label: "Apply the rules",
    operation: "apply_rules",
    oneByOne: true,
    fits: (view) => view.status === "failed" || view.held.length > 0,
    why: "nothing in it has failed or waits",
    will: (count) => `The rules, as they are now, are asked again about what failed in ${cases(count)}. What one takes up is mended, and the case goes on from where it stood; what none takes up stays as it is.`,
    asks: (cases) => `Apply the rules to ${cases}`,
    did: (count) => `A rule takes up what failed in ${plural(count, "case")}`,
    then: { state: "repairing", word: "a rule takes it up" },
    run: applyTo,
  },
  {
    name: "cancel",
    label: "Cancel",
    operation: "cancel",
    danger: true,
    fits: live,
    why: "it is over",
    will: (count) => `${count === 1 ? "The case ends" : `${plural(count, "case")} end`} now, without handlers. Jobs that run are killed; what is done stays. This cannot be taken back, but ${count === 1 ? "it" : "each"} can be run again.`,
    asks: (cases) => `Cancel ${cases}`,
    did: (count) => `${plural(count, "case is", "cases are")} being cancelled`,
    then: { state: "stopped", word: "being cancelled" },
    run: async (id, reason) => {
      await ask(api.POST("/api/v1/cases/{case}/cancel", { ...path(id), body: { reason } }));
      return "cancelled";
    },
  },
];

/** What an act is called for a case. */
export function labelFor(act: CaseAct, view: CaseView): string {
  return act.labelOf?.(view) ?? act.label;
}

export async function refreshCases(client: QueryClient): Promise<void> {
  await Promise.all([client.invalidateQueries({ queryKey: ["cases"] }), client.invalidateQueries({ queryKey: ["case"] })]);
}
