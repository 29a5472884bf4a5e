import { known, text } from "@/app/search-params";

/** What the page keeps in its address: a case whose inputs the form begins with, which is run again (`from`) or left as it is
 * (`like`). */
export function search(raw: Record<string, unknown>) {
  return known({ from: text(raw, "from"), like: text(raw, "like") });
}
