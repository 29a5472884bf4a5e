import { known, oneOf, text } from "@/app/search-params";

/** What the page keeps in its address. */
export function search(raw: Record<string, unknown>) {
  return known({ decision: text(raw, "decision"), only: oneOf(raw, "only", ["waiting", "unhandled", "told", "handled"] as const), act: oneOf(raw, "act", ["mend", "person"] as const) });
}
