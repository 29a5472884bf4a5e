import { flag, known, oneOf, text } from "@/app/search-params";

export const STATES = ["active", "silent", "gone"] as const;

/** What the page keeps in its address: the pilot that is looked at, which are shown, and whether it says how to add one. */
export function search(raw: Record<string, unknown>) {
  return known({ pilot: text(raw, "pilot"), site: text(raw, "site"), state: oneOf(raw, "state", STATES), add: flag(raw, "add") });
}
