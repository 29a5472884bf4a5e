/** Text that is cut for want of room stands whole beside the link or button that has it, as long as the keyboard's focus is there: a
 * title is shown to a pointer alone. Those who hear the page hear the whole text anyway. */
import { useEffect, useState, type CSSProperties } from "react";

const WIDTH_PX = 480;
const GAP_PX = 6;
const ACTS = "a, button, summary";

interface Told {
  text: string;
  place: CSSProperties;
}

export function CutText() {
  const [told, setTold] = useState<Told | null>(null);
  useEffect(() => {
    const show = () => setTold(toldOf(document.activeElement));
    const hide = () => setTold(null);
    const hideByKey = (event: KeyboardEvent) => event.key === "Escape" && hide();
    const heard = [["focusin", show], ["focusout", hide], ["pointerdown", hide], ["scroll", show], ["keydown", hideByKey]] as const;
    for (const [name, run] of heard) document.addEventListener(name, run as EventListener, true);
    return () => {
      for (const [name, run] of heard) document.removeEventListener(name, run as EventListener, true);
    };
  }, []);
  return told && <div className="cut-text" style={told.place} aria-hidden="true">{told.text}</div>;
}

function toldOf(focused: Element | null): Told | null {
  if (!(focused instanceof HTMLElement) || !focused.matches(ACTS) || !focused.matches(":focus-visible")) return null;
  const within = [focused, ...focused.querySelectorAll<HTMLElement>("*")];
  const around = focused.parentElement?.closest<HTMLElement>(".cell, .clip");
  const cut = [...(around ? [around] : []), ...within].filter(isCut);
  const texts = cut.map((each) => each.title || (each.textContent ?? "")).filter((text) => text.trim());
  return texts.length ? { text: [...new Set(texts)].join("\n"), place: placeBeside(focused.getBoundingClientRect()) } : null;
}

/** What is for the ear alone has no size. */
function isCut(element: HTMLElement): boolean {
  if (element.clientWidth <= 1) return false;
  const { overflowX, overflowY } = getComputedStyle(element);
  const isWider = overflowX === "hidden" && element.scrollWidth > element.clientWidth + 1;
  return isWider || (overflowY === "hidden" && element.scrollHeight > element.clientHeight + 1);
}

/** Below it, or above where it is in the lower half of the window. */
function placeBeside({ left, top, bottom }: DOMRect): CSSProperties {
  const from = { left: Math.max(GAP_PX, Math.min(left, innerWidth - WIDTH_PX - GAP_PX)) };
  return bottom < innerHeight / 2 ? { ...from, top: bottom + GAP_PX } : { ...from, bottom: innerHeight - top + GAP_PX };
}
