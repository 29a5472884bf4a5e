/** The draft of a rule, kept in this tab: a reload, a way back or a conflict does not lose it. */
import { useEffect, useState } from "react";
import { plural } from "@/components/format";
import type { ExletDraft } from "@/components/recovery/exlets";

export interface SavedRule {
  rules: string;
  version: number;
  type: string;
  task: string;
  rule: number;
  inForce: boolean;
}

export interface RuleDraft {
  condition: string;
  /** A repair by its name; or the composed one, if `composing`. */
  exlet: string;
  composing: boolean;
  composed: ExletDraft;
  note: string;
  /** The version of the rule set that the author has looked at; null until it is known. */
  basis: number | null;
  saved: SavedRule | null;
}

const EMPTY: RuleDraft = { condition: "", exlet: "", composing: false, composed: { name: "", description: "", steps: [] }, note: "", basis: null, saved: null };

function keyOf(group: string): string {
  return `mendflow.teach.${group}`;
}

function kept(group: string): RuleDraft {
  try {
    const text = sessionStorage.getItem(keyOf(group));
    return text ? { ...EMPTY, ...(JSON.parse(text) as Partial<RuleDraft>) } : EMPTY;
  } catch {
    return EMPTY;
  }
}

/** Somebody has begun with it, and not saved it. */
function isBegun(draft: RuleDraft): boolean {
  return draft.saved === null && Boolean(draft.condition || draft.exlet || draft.composing || draft.note);
}

/** What the draft has in it: `a condition and an exlet of 2 steps`. */
export function draftWords(draft: RuleDraft): string {
  const { steps } = draft.composed;
  const repair = draft.composing && steps.length ? `an exlet of ${plural(steps.length, "step")}` : draft.composing ? "an exlet without steps" : draft.exlet && `the repair ${draft.exlet}`;
  return [draft.condition && "a condition", repair, draft.note && "a note"].filter(Boolean).join(" and ");
}

export function useDraft(group: string, term: string | undefined) {
  const [draft, setDraft] = useState<RuleDraft>(() => {
    const found = kept(group);
    return term && !found.condition ? { ...found, condition: term } : found;
  });
  // What it had in it when the page came: a text that grows while somebody chooses would move what is chosen from.
  const [fromBefore, setFromBefore] = useState(() => (isBegun(kept(group)) ? draftWords(kept(group)) : ""));
  useEffect(() => {
    sessionStorage.setItem(keyOf(group), JSON.stringify(draft));
  }, [group, draft]);
  const change = (part: Partial<RuleDraft>) => setDraft((before) => ({ ...before, ...part }));
  const clear = () => {
    setDraft(EMPTY);
    setFromBefore("");
  };
  return { draft, change, clear, fromBefore };
}
