/** Spans of time that lists are narrowed to, and their conditions. */
import { quoted } from "@/api/queries";

export const SPANS = ["1h", "today", "yesterday", "1 day", "7 days", "30 days", "between"] as const;
export type Span = (typeof SPANS)[number];

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

/** What a field for a time shows: where the viewer is, to the minute. */
export function fieldTime(at: number): string {
  const local = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}
