import { known, oneOf, text } from "@/app/search-params";

export const PERIODS = ["hour", "day", "week", "all"] as const;
export const HANDLING = ["waiting", "unhandled", "run-again", "settled", "rejected", "told", "handled"] as const;

/** What the page keeps in its address. */
export function search(raw: Record<string, unknown>) {
  return known({ since: oneOf(raw, "since", PERIODS), flow: text(raw, "flow"), only: oneOf(raw, "only", HANDLING) });
}
