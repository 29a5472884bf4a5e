import { flag, known, text } from "@/app/search-params";

/** What the page keeps in its address: the schedule that is looked at, and whether one is being made. */
export function search(raw: Record<string, unknown>) {
  return known({ name: text(raw, "name"), make: flag(raw, "make") });
}
