/** What kind of screen the app is shown on. */
import { useSyncExternalStore } from "react";

const phone = matchMedia("(max-width: 640px)");

export function isPhone(): boolean {
  return phone.matches;
}

/** Whether the screen is a phone's, as long as it is. */
export function usePhone(): boolean {
  return useSyncExternalStore((listener) => {
    phone.addEventListener("change", listener);
    return () => phone.removeEventListener("change", listener);
  }, isPhone);
}
