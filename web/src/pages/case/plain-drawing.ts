/** Which drawings (SVG) are drawn. What a job made is drawn in this app's own process, and a short text can ask for billions of
 * shapes: by parts that use parts that use parts, as patterns and masks do too. */

const CHARS_MAX = 5_000_000;
const SHAPES_MAX = 200_000;
const DEPTH_MAX = 200;
const XLINK = "http://www.w3.org/1999/xlink";
const REFERRED = /url\(\s*["']?#([^"')\s]+)/g;

/** Whether it is drawn: it has no more shapes than a page can show, those counted again that are used again. What refers to parts where
 * they cannot be counted, in a style sheet or in a drawing within it, is not. */
export function isPlainDrawing(text: string): boolean {
  if (text.length > CHARS_MAX || /data:image\/svg/i.test(text)) return false;
  const drawing = new DOMParser().parseFromString(text, "image/svg+xml");
  if ([...drawing.getElementsByTagName("style")].some((each) => /url\(|@import/i.test(each.textContent))) return false;
  return shapesIn(drawing) <= SHAPES_MAX;
}

function shapesIn(drawing: Document): number {
  const known = new Map<Element, number>();
  const under = new Set<Element>();
  const parts = new Map<string, Element>();
  for (const each of drawing.querySelectorAll("[id]")) if (!parts.has(each.id)) parts.set(each.id, each);
  const sum = (element: Element): number => {
    const before = known.get(element);
    if (before !== undefined) return before;
    if (under.has(element) || under.size > DEPTH_MAX) return Infinity;
    under.add(element);
    let total = 1;
    for (let child = element.firstElementChild; child; child = child.nextElementSibling) total += sum(child);
    for (const name of referred(element)) {
      const part = parts.get(name);
      if (part) total += sum(part);
    }
    under.delete(element);
    known.set(element, total);
    return total;
  };
  return sum(drawing.documentElement);
}

/** The parts of the drawing that an element has drawn, by their ids. */
function referred(element: Element): string[] {
  const names = [...element.attributes].flatMap(({ value }) => [...value.matchAll(REFERRED)].map((each) => each[1] ?? ""));
  const used = element.getAttribute("href") ?? element.getAttributeNS(XLINK, "href") ?? "";
  return used.startsWith("#") && element.localName !== "a" ? [...names, used.slice(1)] : names;
}
