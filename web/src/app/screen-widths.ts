/** What kind of screen the app is shown on. */
import { useMemo, useSyncExternalStore } from "react";

export const PHONE_PX = 640;
/** As wide, or less, a page has no navigation beside it, and no details. */
export const TABLET_PX = 900;
/** As wide, or less, a table of many columns has no room for them beside the navigation. */
export const LAPTOP_PX = 1240;

const phone = matchMedia(`(max-width: ${PHONE_PX}px)`);

export function isPhone(): boolean {
  return phone.matches;
}

/** Whether the screen is a phone's, as long as it is. */
export function usePhone(): boolean {
  return useMedia(phone);
}

/** Whether the screen is so narrow, as long as it is. */
export function useNarrow(px: number): boolean {
  return useMedia(useMemo(() => matchMedia(`(max-width: ${px}px)`), [px]));
}

function useMedia(media: MediaQueryList): boolean {
  const listen = useMemo(
    () => (listener: () => void) => {
      media.addEventListener("change", listener);
      return () => media.removeEventListener("change", listener);
    },
    [media],
  );
  return useSyncExternalStore(listen, () => media.matches);
}
