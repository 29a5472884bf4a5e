import { known, oneOf } from "@/app/search-params";

export const VIEWS = ["drawing", "file", "model", "deployments", "edit"] as const;

/** What the page keeps in its address. */
export function search(raw: Record<string, unknown>) {
  return known({ view: oneOf(raw, "view", VIEWS) });
}
