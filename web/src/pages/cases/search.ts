import { flag, known, oneOf, text } from "@/app/search-params";
import { SPANS } from "@/components/time-spans";

export const STATUSES = ["running", "suspended", "completed", "failed", "cancelled"] as const;
/** What the page is narrowed to: a status, where those that wait for a person stand apart from the others that run. */
export const CHOICES = ["running", "person", "suspended", "completed", "failed", "cancelled"] as const;

/** What the page keeps in its address: the condition, the order, the quick filters and the case that is looked at. */
export function search(raw: Record<string, unknown>) {
  return known({
    where: text(raw, "where"),
    order: text(raw, "order"),
    status: oneOf(raw, "status", CHOICES),
    flow: text(raw, "flow"),
    /** When it was started; `from` and `to` if between two times. */
    since: oneOf(raw, "since", SPANS),
    from: text(raw, "from"),
    to: text(raw, "to"),
    /** When it ended. */
    ended: oneOf(raw, "ended", SPANS),
    endedFrom: text(raw, "endedFrom"),
    endedTo: text(raw, "endedTo"),
    /** With the cases that others called, and those of exlets. */
    all: flag(raw, "all"),
    at: text(raw, "at"),
  });
}

export type CasesSearch = ReturnType<typeof search>;
