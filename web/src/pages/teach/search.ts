import { known, oneOf, text } from "@/app/search-params";

export const ROWS = ["caught", "missed", "otherwise", "others"] as const;

/** What the page keeps in its address: the case at hand, a first part of the condition, and which rows are open. The draft
 * itself is kept in the tab. */
export function search(raw: Record<string, unknown>) {
  return known({ decision: text(raw, "decision"), term: text(raw, "term"), rows: oneOf(raw, "rows", ROWS) });
}
