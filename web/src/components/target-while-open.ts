/** What something was opened for. Lists are read again by themselves, and what stood first or at a place in them becomes another:
 * a dialog, a menu or a form keeps what was meant when it was opened. */
import { useState } from "react";

/** The first target that was there since it is open; nothing while it is not. */
export function useTargetWhileOpen<T>(isOpen: boolean, target: T | undefined): T | undefined {
  const [kept, setKept] = useState<{ target: T } | null>(null);
  if (!isOpen) {
    if (kept) setKept(null);
    return undefined;
  }
  if (kept) return kept.target;
  if (target !== undefined) setKept({ target });
  return target;
}
