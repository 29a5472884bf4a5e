import { known, oneOf, text } from "@/app/search-params";

/** What the page keeps in its address: the domain that is looked at, and what is being done. */
export function search(raw: Record<string, unknown>) {
  return known({ domain: text(raw, "domain"), make: oneOf(raw, "make", ["invite", "accept"] as const) });
}
