import { flag, known, text } from "@/app/search-params";

/** What the page keeps in its address: where to go afterwards, whether a session has ended, and whether somebody has ended it. */
export function search(raw: Record<string, unknown>) {
  return known({ next: text(raw, "next"), over: flag(raw, "over"), out: flag(raw, "out") });
}
