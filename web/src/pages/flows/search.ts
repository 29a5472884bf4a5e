import { known, text } from "@/app/search-params";

/** What the page keeps in its address: what flows are looked for. */
export function search(raw: Record<string, unknown>) {
  return known({ find: text(raw, "find") });
}
