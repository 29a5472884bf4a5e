import { known, oneOf, text, whole } from "@/app/search-params";

export const VIEWS = ["graph", "timeline", "items", "history", "data", "messages", "compare", "file"] as const;
export type View = (typeof VIEWS)[number];

/** What the page keeps in its address: which view, which item is looked at, and how far the view is narrowed. */
export function search(raw: Record<string, unknown>) {
  return known({
    view: oneOf(raw, "view", VIEWS),
    item: text(raw, "item"),
    node: text(raw, "node"),
    name: text(raw, "name"),
    state: text(raw, "state"),
    where: text(raw, "where"),
    find: text(raw, "find"),
    full: oneOf(raw, "full", ["yes"] as const),
    entries: oneOf(raw, "entries", ["all"] as const),
    with: text(raw, "with"),
    from: whole(raw, "from"),
    to: whole(raw, "to"),
    idle: oneOf(raw, "idle", ["folded", "shown"] as const),
    line: whole(raw, "line"),
  });
}
