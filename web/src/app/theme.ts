/** Light or dark: as the system says, until somebody chooses. */
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const KEY = "mendflow.theme";
const listeners = new Set<() => void>();
const systemDark = typeof matchMedia === "undefined" ? null : matchMedia("(prefers-color-scheme: dark)");

function chosen(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function isDark(): boolean {
  const theme = chosen();
  return theme === "dark" || (theme === "system" && systemDark?.matches === true);
}

export function applyTheme(): void {
  document.documentElement.dataset["theme"] = isDark() ? "dark" : "light";
  for (const listener of listeners) listener();
}

export function chooseTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  applyTheme();
}

systemDark?.addEventListener("change", applyTheme);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useTheme(): { theme: Theme; dark: boolean } {
  const theme = useSyncExternalStore(subscribe, chosen);
  const dark = useSyncExternalStore(subscribe, isDark);
  return { theme, dark };
}

/** A colour of the style sheets, for what is drawn on a canvas: `cssColour("--state-failed")`. */
export function cssColour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
