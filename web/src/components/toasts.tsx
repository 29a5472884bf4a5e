/** Short notes about what was done or refused, at the edge of the page, and told to screen readers. */
import { TextWithCode } from "@/components/text-with-code";
import { useSyncExternalStore, type ReactNode } from "react";
import { ApiError, messageOf } from "@/api/errors";
import { Icon } from "./icon";

interface Toast {
  id: number;
  kind: "good" | "bad" | "note";
  text: ReactNode;
  more?: string;
}

let toasts: readonly Toast[] = [];
let serial = 0;
const listeners = new Set<() => void>();

function become(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

export function dismiss(id: number): void {
  become(toasts.filter((toast) => toast.id !== id));
}

export function toast(kind: Toast["kind"], text: ReactNode, more?: string): void {
  serial += 1;
  const id = serial;
  // What is said again takes the place of what was said before.
  become([...toasts.filter((each) => each.kind !== kind || each.text !== text || each.more !== more).slice(-2), { id, kind, text, more }]);
  if (kind !== "bad") setTimeout(() => dismiss(id), 6000);
}

/** Say what the API said: `onError: toastError`. */
export function toastError(error: unknown): void {
  toast("bad", messageOf(error), error instanceof ApiError ? error.whatToDo : undefined);
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="log" aria-live="polite" aria-label="Notes">
      {shown.map((each) => (
        <div key={each.id} className={`toast ${each.kind}`}>
          <Icon name={each.kind === "bad" ? "failures" : "check"} size={14} />
          <div>
            <div>{typeof each.text === "string" ? <TextWithCode text={each.text} /> : each.text}</div>
            {each.more && <div className="muted">{each.more}</div>}
          </div>
          <button type="button" className="icon-button" aria-label="Dismiss" onClick={() => dismiss(each.id)}>
            <Icon name="close" size={14} />
          </button>
        </div>
      ))}
    </div>
  );
}
