/** Times are told as how long ago they are, which soon is not true any more: who copies one copies the whole time. */

interface ShownTime {
  shown: string;
  whole: string;
}

/** The text with each of the times, in their order, as it is whole. */
export function withWholeTimes(text: string, times: readonly ShownTime[]): string {
  let copied = "";
  let rest = text;
  for (const { shown, whole } of times) {
    const at = shown ? rest.indexOf(shown) : -1;
    if (at < 0) continue;
    copied += rest.slice(0, at) + whole;
    rest = rest.slice(at + shown.length);
  }
  return copied + rest;
}

function timesIn(selection: Selection): ShownTime[] {
  const range = selection.getRangeAt(0);
  const around = range.commonAncestorContainer;
  const own = (around instanceof Element ? around : around.parentElement)?.closest("time");
  const found = own ? [own] : [...range.cloneContents().querySelectorAll("time")];
  return found.map((each) => ({ shown: each.textContent ?? "", whole: each.dateTime }));
}

export function copyWholeTimes(): void {
  document.addEventListener("copy", (event) => {
    const selection = document.getSelection();
    if (!selection?.rangeCount || selection.isCollapsed || !event.clipboardData) return;
    const times = timesIn(selection);
    if (!times.length) return;
    event.clipboardData.setData("text/plain", withWholeTimes(selection.toString(), times));
    event.preventDefault();
  });
}
