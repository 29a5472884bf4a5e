/** The keyboard: a page says which keys it has and what they do; `?` lists those that hold now.
 *
 * Keys are written as they are typed: `/`, `j`, `g c` (one after the other), `Escape`. While somebody types into a field,
 * or a dialog is open, only the field and the dialog hear. */
import { useEffect, useRef, useSyncExternalStore } from "react";

export interface Key {
  keys: string;
  does: string;
  run: () => void;
}

interface Group {
  name: string;
  keys: () => readonly Key[];
}

const groups: Group[] = [];
const listeners = new Set<() => void>();
let version = 0;
let before = "";
let beforeAt = 0;

const SEQUENCE_MS = 1200;

function changed(): void {
  version += 1;
  for (const listener of listeners) listener();
}

function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.shadowRoot?.activeElement) return true;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

function press(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing(event.target) || document.querySelector("[role=dialog][data-modal], [role=menu], [role=listbox]")) return;
  const sequence = Date.now() - beforeAt < SEQUENCE_MS && before ? `${before} ${event.key}` : "";
  before = "";
  const all = groups.toReversed().flatMap((group) => group.keys());
  const found = all.find((key) => key.keys === sequence) ?? all.find((key) => key.keys === event.key);
  if (found) {
    event.preventDefault();
    found.run();
  } else if (all.some((key) => key.keys.startsWith(`${event.key} `))) {
    before = event.key;
    beforeAt = Date.now();
  }
}

export function startKeys(): void {
  document.addEventListener("keydown", press);
}

/** These keys hold as long as the component is there: `useKeys("Cases", [{keys: "r", does: "rerun", run}])`. */
export function useKeys(name: string, keys: readonly Key[]): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    const group: Group = { name, keys: () => latest.current };
    groups.push(group);
    changed();
    return () => {
      groups.splice(groups.indexOf(group), 1);
      changed();
    };
  }, [name]);
}

export function useKeyGroups(): { name: string; keys: readonly Key[] }[] {
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => version,
  );
  return groups.toReversed().map((group) => ({ name: group.name, keys: group.keys() }));
}
