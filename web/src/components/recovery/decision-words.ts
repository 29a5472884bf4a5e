/** A failure in words: which case, in which of its items, and when. Ids of decisions say that to nobody. */
import { bytes, clock, day, duration, number } from "@/components/format";
import { UNDER_WAY, type DecisionView } from "./queries";

type Named = Pick<DecisionView, "case" | "item" | "task" | "at"> & { element?: string };

/** `measure[3]`, or nothing where the case itself is meant. */
export function itemWords(decision: Pick<Named, "item" | "task" | "element">): string {
  return decision.item ? `${decision.task || decision.item}${decision.element ? `[${decision.element}]` : ""}` : "";
}

export function decisionWords(decision: Named, now = Date.now()): string {
  const today = day(decision.at) === day(now);
  return [decision.case, itemWords(decision), today ? clock(decision.at) : `${day(decision.at)}, ${clock(decision.at)}`].filter(Boolean).join(" · ");
}

/** What came of a decision, in words. */
export function cameOf(decision: Pick<DecisionView, "state" | "result" | "note">): string {
  if (decision.result === "told") return "administrators were told, and nothing else was done";
  if (decision.state === "running") return "it is under way";
  if (decision.result === UNDER_WAY) return "tried again, not over yet";
  const failed = decision.state === "failed" || decision.result === "failed";
  return `${decision.result || decision.state}${failed && decision.note ? ` (${decision.note})` : ""}`;
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
