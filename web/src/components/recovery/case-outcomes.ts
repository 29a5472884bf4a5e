/** What came of each case that rules were applied to, followed to its end: the newest decision alone tells neither how often it
 * was repaired nor by what. */
import type { State } from "@/api/states";
import { plural } from "@/components/format";
import { resultWord } from "./decision-words";
import { UNDER_WAY, type DecisionView } from "./queries";

type Told = Pick<DecisionView, "id" | "case" | "item" | "at" | "state" | "exlet" | "rule" | "result" | "replaced_by">;

export interface CaseOutcome {
  case: string;
  state: State;
  /** What has come of it: `failed each time`. */
  word: string;
  /** What was done: `tried 3 times with mkdir-then-re-submit (rule 1)`; empty where nothing was. */
  tried: string;
}

const OVER: Record<string, [State, string]> = { failed: ["failed", "the case has failed"], cancelled: ["stopped", "the case was cancelled"], completed: ["done", "the case has completed"] };

/** `decisions` come the newest first. Asked about are those of `asked`, and what the same cases have failed by since. `status` is
 * what is known of each case: nothing is under repair in a case that is over. */
export function caseOutcomes(decisions: readonly Told[], asked: ReadonlySet<string>, since: number, status: ReadonlyMap<string, string>): CaseOutcome[] {
  const byCase = new Map<string, Told[]>();
  const cases = new Set(decisions.filter((each) => asked.has(each.id)).map((each) => each.case));
  for (const each of decisions) {
    if (!cases.has(each.case) || each.replaced_by || !(asked.has(each.id) || each.at >= since)) continue;
    byCase.set(each.case, [...(byCase.get(each.case) ?? []), each]);
  }
  return [...byCase].map(([id, found]) => ({ case: id, ...endOf(found, status.get(id) ?? ""), tried: triedWords(found) }));
}

function isTry(decision: Told): boolean {
  return Boolean(decision.exlet) && ["running", "done", "failed"].includes(decision.state);
}

function triedWords(found: readonly Told[]): string {
  const counts = new Map<string, number>();
  for (const each of found.filter(isTry)) {
    const by = `with ${each.exlet}${each.rule === null ? "" : ` (rule ${each.rule})`}`;
    counts.set(by, (counts.get(by) ?? 0) + 1);
  }
  const parts = [...counts].map(([by, count]) => `${count === 1 ? "once" : plural(count, "time")} ${by}`);
  return parts.length ? `tried ${parts.join(", ")}` : "";
}

function endOf(found: readonly Told[], status: string): { state: State; word: string } {
  const newest = [...new Map(found.toReversed().map((each) => [each.item, each])).values()]; // of each item
  const tries = found.filter(isTry);
  if (newest.some(isUnderWay)) {
    const over = OVER[status];
    if (over) return { state: over[0], word: over[1] };
    return newest.some((each) => each.state === "running") ? { state: "repairing", word: "under repair" } : { state: "repairing", word: "tried again, not over yet" };
  }
  if (newest.some((each) => each.state === "waiting")) return { state: "person", word: tries.length ? "did not help: waits for a person" : "waits: no rule took it up" };
  const open = newest.filter((each) => !isTry(each) || each.result === "failed" || each.state === "failed");
  if (!open.length) {
    const words = [...new Set(newest.map((each) => each.result || each.state))];
    return words.every((each) => each === "recovered") ? { state: "done", word: "recovered" } : { state: words.includes("recovered") || words.includes("completed") ? "done" : "stopped", word: words.map(resultWord).join(", ") };
  }
  const inVain = tries.filter((each) => each.result === "failed" || each.state === "failed").length;
  if (!tries.length) return { state: "failed", word: "no rule took it up" };
  if (inVain === tries.length) return { state: "failed", word: inVain === 1 ? "failed again" : "failed each time" };
  return { state: "failed", word: "failed in the end" };
}

function isUnderWay(decision: Told): boolean {
  return decision.state === "running" || decision.result === UNDER_WAY || (decision.state === "done" && decision.exlet !== "" && decision.result === "");
}
