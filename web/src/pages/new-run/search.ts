import { known, text } from "@/app/search-params";

/** What the page keeps in its address: a case whose inputs the form begins with. */
export function search(raw: Record<string, unknown>) {
  return known({ from: text(raw, "from") });
}
