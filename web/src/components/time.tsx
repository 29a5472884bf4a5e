/** Times: relative, with the exact one on hover and for screen readers. All of them share one clock. */
import { useSyncExternalStore } from "react";
import { ago, duration, exact, ticking } from "./format";

const listeners = new Set<() => void>();
let clockTimer: ReturnType<typeof setInterval> | null = null;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  clockTimer ??= setInterval(() => {
    if (!document.hidden) for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (!listeners.size && clockTimer) {
      clearInterval(clockTimer);
      clockTimer = null;
    }
  };
}

/** A text that depends on now; the component renders only when the text changes. */
export function useNowText(text: (now: number) => string): string {
  return useSyncExternalStore(subscribe, () => text(Date.now()));
}

export function Time({ at, none = "" }: { at: number | null | undefined; none?: string }) {
  const text = useNowText((now) => (at ? ago(at, now) : none));
  if (!at) return <span className="muted">{none}</span>;
  return (
    <time className="time" dateTime={new Date(at).toISOString()} title={exact(at)}>
      {text}
    </time>
  );
}

/** How long something took: from its start to its end, or to now while it is not over. */
export function Duration({ from, to }: { from: number | null | undefined; to?: number | null }) {
  const text = useNowText((now) => {
    if (!from) return "";
    return to ? duration(to - from) : ticking(now - from);
  });
  return (
    <span className="duration" title={from ? exact(from) : undefined}>
      {text}
    </span>
  );
}
