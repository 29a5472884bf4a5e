import { known, oneOf, text } from "@/app/search-params";

export const VIEWS = ["files", "sets", "storage", "results"] as const;

/** What the page keeps in its address: the view, what is looked for, and what is looked at. */
export function search(raw: Record<string, unknown>) {
  return known({ view: oneOf(raw, "view", VIEWS), prefix: text(raw, "prefix"), set: text(raw, "set"), flow: text(raw, "flow"), name: text(raw, "name") });
}
