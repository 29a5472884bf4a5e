import { known, oneOf, text } from "@/app/search-params";

export const STATES = ["active", "silent", "gone"] as const;

/** What the page keeps in its address: the pilot that is looked at, and which are shown. */
export function search(raw: Record<string, unknown>) {
  return known({ pilot: text(raw, "pilot"), site: text(raw, "site"), state: oneOf(raw, "state", STATES) });
}
