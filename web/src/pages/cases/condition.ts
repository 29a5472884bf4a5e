/** The condition that the page asks with: what was typed, and the quick filters. */
import type { CasesSearch } from "./search";

function quoted(value: string): string {
  return `'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

const AGO: Record<string, string> = { "1h": "1h", "1 day": "1 day", "7 days": "7 days", "30 days": "30 days" };

export function conditionOf(search: CasesSearch, without: "status" | "" = ""): string {
  const parts = [
    search.status && without !== "status" ? `status == ${quoted(search.status)}` : "",
    search.flow ? `flow == ${quoted(search.flow)}` : "",
    search.since ? `started > ago(${quoted(AGO[search.since] ?? "1 day")})` : "",
    search.all ? "" : "parent == null && mends == null",
    search.where ? (/\|\||\?/.test(search.where) ? `(${search.where})` : search.where) : "",
  ];
  return parts.filter(Boolean).join(" && ");
}
