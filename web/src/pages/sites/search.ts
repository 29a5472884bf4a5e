import { flag, known, text } from "@/app/search-params";

/** What the page keeps in its address: the site that is looked at, and whether one is being added. */
export function search(raw: Record<string, unknown>) {
  return known({ site: text(raw, "site"), make: flag(raw, "make") });
}
