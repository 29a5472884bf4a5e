/** Where somebody tried to send a form that is not right yet: the first field with a mistake gets the focus, which scrolls to it. */
import { useEffect } from "react";

/** `tries` counts how often it was tried: after each, when it is drawn which fields have a mistake. */
export function useInvalidFieldFocus(tries: number): void {
  useEffect(() => {
    if (!tries) return;
    const inside = document.querySelector("[data-modal]") ?? document;
    inside.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [tries]);
}
