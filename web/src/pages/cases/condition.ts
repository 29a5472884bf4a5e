/** What the page asks with besides what was typed: the quick filters. They are asked apart, so that the API names places in
 * what was typed. */
import { quoted } from "@/api/queries";
import type { CasesSearch, Span } from "./search";

const AGO: Partial<Record<Span, string>> = { "1h": "1h", "1 day": "1 day", "7 days": "7 days", "30 days": "30 days" };

/** Midnight of this day, or of one so many days away, where the viewer is. */
function midnight(now: Date, days: number): string {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + days).toISOString();
}

/** `2026-11-17T08:30` of a field, where the viewer is, as the API wants it; empty if it is no time. */
function moment(text: string | undefined): string {
  const at = text ? new Date(text.includes("T") ? text : `${text}T00:00`) : null;
  return at && !Number.isNaN(at.getTime()) ? at.toISOString() : "";
}

/** The conditions that a time is in a span. */
export function withinSpan(name: string, span: Span | undefined, from?: string, to?: string, now = new Date()): string[] {
  if (!span) return [];
  if (AGO[span]) return [`${name} > ago(${quoted(AGO[span])})`];
  const [begin, end] = {
    today: [midnight(now, 0), ""],
    yesterday: [midnight(now, -1), midnight(now, 0)],
    between: [moment(from), moment(to)],
  }[span as "today" | "yesterday" | "between"];
  return [begin && `${name} >= ${quoted(begin)}`, end && `${name} < ${quoted(end)}`].filter((each): each is string => Boolean(each));
}

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

/** What a field for a time shows: where the viewer is, to the minute. */
export function fieldTime(at: number): string {
  const local = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}
