import { flag, known, oneOf, text, whole } from "@/app/search-params";

export const VIEWS = ["tree", "versions", "trial", "cornerstones", "exlets"] as const;

/** What the page keeps in its address: the view, the tree (`abort/send`), the rule, and the versions or rules compared, the exlet, and whether the rule is being changed. */
export function search(raw: Record<string, unknown>) {
  return known({
    view: oneOf(raw, "view", VIEWS),
    tree: text(raw, "tree"),
    rule: whole(raw, "rule"),
    version: whole(raw, "version"),
    with: whole(raw, "with"),
    exlet: text(raw, "exlet"),
    edit: flag(raw, "edit"),
  });
}
