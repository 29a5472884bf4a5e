import { flag, known, oneOf, text } from "@/app/search-params";

export const STATUSES = ["running", "suspended", "completed", "failed", "cancelled"] as const;
export const SPANS = ["1h", "1 day", "7 days", "30 days"] as const;

/** What the page keeps in its address: the condition, the order, the quick filters and the case that is looked at. */
export function search(raw: Record<string, unknown>) {
  return known({
    where: text(raw, "where"),
    order: text(raw, "order"),
    status: oneOf(raw, "status", STATUSES),
    flow: text(raw, "flow"),
    since: oneOf(raw, "since", SPANS),
    /** With the cases that others called, and those of exlets. */
    all: flag(raw, "all"),
    at: text(raw, "at"),
  });
}

export type CasesSearch = ReturnType<typeof search>;
