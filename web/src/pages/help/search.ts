import { known, text } from "@/app/search-params";

/** What the page keeps in its address: the word that is looked for. */
export function search(raw: Record<string, unknown>) {
  return known({ word: text(raw, "word") });
}
