import { flag, known, oneOf, text } from "@/app/search-params";

export const VIEWS = ["tokens", "projects", "audit", "alerts", "webhooks", "retention", "limits", "secrets", "versions"] as const;
export type View = (typeof VIEWS)[number];

/** What the page keeps in its address: the view, and what the record of who did what is searched for. */
export function search(raw: Record<string, unknown>) {
  return known({
    view: oneOf(raw, "view", VIEWS),
    who: text(raw, "who"),
    operation: text(raw, "operation"),
    object: text(raw, "object"),
    outcome: text(raw, "outcome"),
    /** With the entries about files that were stored. */
    files: flag(raw, "files"),
    every: flag(raw, "every"),
    /** With the messages, which need no act. */
    messages: flag(raw, "messages"),
  });
}
