/** The keyboard: a page says which keys it has and what they do; `?` lists those that hold now.
 *
 * Keys are written as they are typed: `/`, `j`, `g c` (one after the other), `Escape`. While somebody types into a field,
 * or a dialog is open, only the field and the dialog hear. */
import { useLayoutEffect, useRef, useSyncExternalStore } from "react";

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

interface Pressed {
  key: string;
  at: number;
}

/** Pressed while the page was seen, and the app still on its way. */
let early: readonly Pressed[] = [];

const SEQUENCE_MS = 1200;
const EARLY_MS = 5000;

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

/** Whether a key that is pressed there is for a field, or for what is open above the page. */
function isForOthers(target: EventTarget | null): boolean {
  return typing(target) || document.querySelector("[role=dialog][data-modal], [role=menu], [role=listbox]") !== null;
}

/** A page without keys, such as that of the sign-in, may stay for long. */
function fresh(pressed: readonly Pressed[]): Pressed[] {
  return pressed.filter(({ at }) => Date.now() - at < EARLY_MS);
}

function press(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isForOthers(event.target)) return;
  if (groups.every((group) => group.keys().length === 0)) early = [...fresh(early), { key: event.key, at: Date.now() }];
  else if (act(event.key, Date.now())) event.preventDefault();
}

/** Whether the key is one of this page. */
function act(key: string, at: number): boolean {
  const sequence = at - beforeAt < SEQUENCE_MS && before ? `${before} ${key}` : "";
  before = "";
  const all = groups.toReversed().flatMap((group) => group.keys());
  const found = all.find((each) => each.keys === sequence) ?? all.find((each) => each.keys === key);
  if (found) {
    found.run();
  } else if (all.some((each) => each.keys.startsWith(`${key} `))) {
    before = key;
    beforeAt = at;
  }
  return found !== undefined;
}

/** A field or a dialog may have opened since they were pressed, and each of them may open one. */
function actOnEarly(): void {
  const pressed = fresh(early);
  early = [];
  for (const { key, at } of pressed) if (!isForOthers(document.activeElement)) act(key, at);
}

/** How many keys wait for a page that has some. */
export function countEarly(): number {
  return early.length;
}

export function startKeys(): void {
  document.addEventListener("keydown", press);
}

/** These keys hold as long as the component is there: `useKeys("Cases", [{keys: "r", does: "rerun", run}])`. */
export function useKeys(name: string, keys: readonly Key[]): void {
  const latest = useRef(keys);
  // Keys hold from the moment that their page is seen, not a moment later.
  useLayoutEffect(() => {
    latest.current = keys;
    if (early.length > 0 && keys.length > 0) setTimeout(actOnEarly);
  });
  useLayoutEffect(() => {
    const group: Group = { name, keys: () => latest.current };
    groups.push(group);
    changed();
    return () => {
      groups.splice(groups.indexOf(group), 1);
      changed();
    };
  }, [name]);
}

/** One group per name, however many parts of a page have keys under it. */
export function useKeyGroups(): { name: string; keys: readonly Key[] }[] {
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => version,
  );
  const named = new Map<string, Key[]>();
  for (const group of groups.toReversed()) named.set(group.name, [...(named.get(group.name) ?? []), ...group.keys()]);
  return [...named].map(([name, keys]) => ({ name, keys }));
}
