import { flag, known, text } from "@/app/search-params";

/** What the page keeps in its address: a case whose inputs the form begins with, which is run again (`rerun_of`) or left as
 * it is (`inputs_of`); or that several cases are started from a table. */
export function search(raw: Record<string, unknown>) {
  return known({ rerun_of: text(raw, "rerun_of"), inputs_of: text(raw, "inputs_of"), table: flag(raw, "table") });
}
