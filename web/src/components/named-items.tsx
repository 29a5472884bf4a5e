/** Items that a sentence of the server names, as links to them. */
import { Link, useParams } from "@tanstack/react-router";
import type { ReactNode } from "react";

/** The ids of the items of one case, by what they are called in the sentence. */
export interface NamedItems {
  case: string;
  items: Readonly<Record<string, string>>;
}

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** A text in parts: what is no text is the name of an item, where it is named first. A name that a colon follows is meant before a
 * word of the sentence that happens to be the same. */
export function partsWithItems(text: string, items: NamedItems["items"]): (string | { name: string; item: string })[] {
  const names = Object.keys(items).toSorted((one, other) => other.length - one.length);
  let parts: (string | { name: string; item: string })[] = [text];
  for (const name of names) {
    const ends = [":", "[\\s,;.]|$"].map((end) => new RegExp(`(?<=^|[\\s(])${escaped(name)}(?=${end})`));
    for (const is of ends) {
      const at = parts.findIndex((part) => typeof part === "string" && is.test(part));
      if (at < 0) continue;
      const part = parts[at] as string;
      const from = is.exec(part)?.index ?? 0;
      const found = [part.slice(0, from), { name, item: items[name] ?? name }, part.slice(from + name.length)].filter((each) => each !== "");
      parts = [...parts.slice(0, at), ...found, ...parts.slice(at + 1)];
      break;
    }
  }
  return parts;
}

/** On the page of the case it opens beside what is shown there. */
export function ItemLink({ of, item, children }: { of: string; item: string; children: ReactNode }) {
  const isHere = useParams({ strict: false, select: (params) => params.case === of });
  if (isHere) return <Link from="/cases/$case" to="." search={(before) => ({ ...before, node: undefined, line: undefined, item })}>{children}</Link>;
  return <Link to="/cases/$case" params={{ case: of }} search={{ view: "items", item }}>{children}</Link>;
}
