import { flag, known, text } from "@/app/search-params";

/** What the page keeps in its address: what flows are looked for, and whether a new one is being written, from the file of which case. */
export function search(raw: Record<string, unknown>) {
  return known({ find: text(raw, "find"), write: flag(raw, "write"), of_case: text(raw, "of_case") });
}
