/** A failure in words: which case, in which of its items, and when. Ids of decisions say that to nobody. */
import { personText } from "@/components/person-text";
import { itemText } from "@/components/item-text";
import { bytes, clock, day, duration, number } from "@/components/format";
import { UNDER_WAY, type DecisionView } from "./queries";

type Named = Pick<DecisionView, "case" | "item" | "at"> & { element?: string };

/** `measure[1] (m31)`, as on the page of the case, or nothing where the case itself is meant. */
export function itemWords({ item, element }: Pick<Named, "item" | "element">): string {
  return item ? itemText({ item, element }) : "";
}

export function decisionWords(decision: Named, now = Date.now()): string {
  const today = day(decision.at) === day(now);
  return [decision.case, itemWords(decision), today ? clock(decision.at) : `${day(decision.at)}, ${clock(decision.at)}`].filter(Boolean).join(" · ");
}

/** Results that are not words of their own. */
const RESULTS: Readonly<Record<string, string>> = { [UNDER_WAY]: "tried again, not over yet", restarted: "begun again", failed: "tried in vain", told: "only told to a person", "passed-on": "passed on" };

export function resultWord(result: string): string {
  return RESULTS[result] ?? result;
}

const HELPED = ["recovered", "completed"];
/** After these it is not known whether the repair itself has helped. */
const UNKNOWN = [UNDER_WAY, "restarted", "told", "removed", "unwound"];

/** How often a repair was done of which it is known what it has helped, and how often it has. */
export function triedAndHelped({ results, count }: { results: Readonly<Record<string, number>>; count: number }): { tried: number; helped: number } {
  const sum = (words: readonly string[]) => words.reduce((all, word) => all + (results[word] ?? 0), 0);
  return { tried: count - sum(UNKNOWN), helped: sum(HELPED) };
}

/** `1/2 helped`, or what came of it where that does not say whether it has helped. */
export function helpedText(of: { results: Readonly<Record<string, number>>; count: number }): string {
  const { tried, helped } = triedAndHelped(of);
  const [other] = Object.keys(of.results);
  return tried || other === undefined ? `${helped}/${tried}` : resultWord(other);
}

/** What came of a decision, in words. */
export function cameOf(decision: Pick<DecisionView, "state" | "result" | "note">): string {
  if (decision.result === "told") return "administrators were told, and nothing else was done";
  if (decision.state === "running") return "it is under way";
  const failed = decision.state === "failed" || decision.result === "failed";
  return `${decision.result ? resultWord(decision.result) : decision.state}${failed && decision.note ? ` (${decision.note})` : ""}`;
}

const ASKED = [
  ["memory_bytes", "memory", bytes, 0],
  ["disk_bytes", "disk", bytes, 0],
  ["wall_ms", "time", duration, 0],
  ["cpus", "CPUs", number, 1],
  ["gpus", "GPUs", number, 0],
] as const;

/** What a job asks for otherwise than before. */
export function changes(before: Record<string, unknown>, after: Record<string, unknown>): string[] {
  const said = ASKED.flatMap(([field, word, text, none]) => {
    const [was, is] = [Number(before[field] ?? none), Number(after[field] ?? none)];
    return was === is ? [] : [`${word} ${was ? text(was) : "not said"} → ${is ? text(is) : "not said"}`];
  });
  const avoided = (values: unknown) => (Array.isArray(values) ? values.map(String) : []);
  const more = avoided(after["avoid_hosts"]).filter((host) => !avoided(before["avoid_hosts"]).includes(host));
  return [...said, ...(more.length ? [`not on ${more.join(", ")}`] : [])];
}

const HANDLINGS: Partial<Record<DecisionView["handling"], string>> = {
  rejected: "a person rejected it",
  "run-again": "its case was run again",
  settled: "its case completed all the same, or was cancelled",
};

/** What has become of a failure since somebody began to look at it; nothing if it is as it was. */
export function settledText(was: DecisionView, now: DecisionView | undefined): string {
  if (!now || (now.state === was.state && now.handling === was.handling && now.replaced_by === was.replaced_by)) return "";
  const by = now.ordered_by ? ` by order of ${personText(now.ordered_by)}` : "";
  const became = HANDLINGS[now.handling] ?? (now.exlet ? `${now.exlet} was done${by}: ${cameOf(now)}` : now.replaced_by ? "it failed again, and that stands on its own" : cameOf(now));
  return `Meanwhile ${[was.case, itemWords(was)].filter(Boolean).join(" ")} was settled: ${became}. Nothing is done to it here.`;
}
