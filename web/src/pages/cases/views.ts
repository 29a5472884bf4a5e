/** Saved views: searches with a name, kept in this browser. */
import { useSyncExternalStore } from "react";
import type { CasesSearch } from "./search";

export interface SavedView {
  name: string;
  search: CasesSearch;
}

const KEY = "mendflow.case-views";
const listeners = new Set<() => void>();
let read: { text: string; views: SavedView[] } = { text: "", views: [] };

function current(): SavedView[] {
  const text = localStorage.getItem(KEY) ?? "[]";
  if (text !== read.text) {
    let views: SavedView[] = [];
    try {
      const parsed = JSON.parse(text) as unknown;
      if (Array.isArray(parsed)) views = parsed as SavedView[];
    } catch {
      views = [];
    }
    read = { text, views };
  }
  return read.views;
}

function keep(views: SavedView[]): void {
  localStorage.setItem(KEY, JSON.stringify(views));
  for (const listener of listeners) listener();
}

export function saveView(name: string, { at: _, ...search }: CasesSearch): void {
  keep([...current().filter((view) => view.name !== name), { name, search }].toSorted((a, b) => a.name.localeCompare(b.name)));
}

export function removeView(name: string): void {
  keep(current().filter((view) => view.name !== name));
}

export function useSavedViews(): SavedView[] {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    addEventListener("storage", listener);
    return () => {
      listeners.delete(listener);
      removeEventListener("storage", listener);
    };
  }, current);
}
