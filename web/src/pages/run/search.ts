import { flag, known, text } from "@/app/search-params";

/** What the page keeps in its address: what flows are looked for, and whether a new one is being written. */
export function search(raw: Record<string, unknown>) {
  return known({ find: text(raw, "find"), write: flag(raw, "write") });
}
