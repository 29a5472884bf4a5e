import { known, oneOf, text } from "@/app/search-params";
import { HANDLING } from "../failures/search";

/** What the page keeps in its address. */
export function search(raw: Record<string, unknown>) {
  return known({ decision: text(raw, "decision"), only: oneOf(raw, "only", HANDLING), act: oneOf(raw, "act", ["mend", "person"] as const) });
}
