/** A failure in words: which case, in which of its items, and when. Ids of decisions say that to nobody. */
import { clock, day } from "@/components/format";
import type { DecisionView } from "./queries";

type Named = Pick<DecisionView, "case" | "item" | "task" | "at"> & { element?: string };

/** `measure[3]`, or nothing where the case itself is meant. */
export function itemWords(decision: Pick<Named, "item" | "task" | "element">): string {
  return decision.item ? `${decision.task || decision.item}${decision.element ? `[${decision.element}]` : ""}` : "";
}

export function decisionWords(decision: Named, now = Date.now()): string {
  const today = day(decision.at) === day(now);
  return [decision.case, itemWords(decision), today ? clock(decision.at) : `${day(decision.at)}, ${clock(decision.at)}`].filter(Boolean).join(" · ");
}
