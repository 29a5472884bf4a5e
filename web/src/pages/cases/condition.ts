/** What the page asks with besides what was typed: the quick filters. They are asked apart, so that the API names places in
 * what was typed. */
import { quoted } from "@/api/queries";
import { withinSpan } from "@/components/time-spans";
import type { CasesSearch } from "./search";

export function filtersOf(search: CasesSearch, without: "status" | "" = ""): string {
  const status = without === "status" ? undefined : search.status;
  const parts = [
    status === "person" || status === "running" ? `status == 'running' && ${status === "person" ? "" : "!"}for_person` : status ? `status == ${quoted(status)}` : "",
    search.flow ? `flow == ${quoted(search.flow)}` : "",
    ...withinSpan("started", search.since, search.from, search.to),
    ...withinSpan("ended", search.ended, search.endedFrom, search.endedTo),
    search.all ? "" : "parent == null && mends == null",
  ];
  return parts.filter(Boolean).join(" && ");
}

/** What the numbers of the page count: cases by status, and those that wait for a person, whatever status is chosen. */
export function countsAsked(search: CasesSearch) {
  const { where } = search;
  return { byStatus: { where, also: filtersOf(search, "status"), by: "status" }, forPerson: { where, also: filtersOf({ ...search, status: "person" }) } } as const;
}

/** Both together, to be read by people. */
export function conditionOf(search: CasesSearch): string {
  return [search.where, filtersOf(search)].filter(Boolean).join(" && ");
}
