import { known, oneOf, text } from "@/app/search-params";

export const SHOWN = ["open", "mine", "ended", "failures"] as const;

/** What the page keeps in its address: which tasks are shown, and of which role and case. */
export function search(raw: Record<string, unknown>) {
  return known({ show: oneOf(raw, "show", SHOWN), role: text(raw, "role"), case: text(raw, "case") });
}
