/** Which values of their contexts distinguish the failures of a group from other failures, and from jobs that ended well. */
import { number } from "@/components/format";
import { pathOf } from "./conditions";
import type { ValueCount } from "./queries";

export type Counted = Pick<ValueCount, "here" | "of_here" | "elsewhere" | "of_elsewhere" | "succeeded" | "known_succeeded">;
type CountedValue = Counted & Partial<Pick<ValueCount, "value" | "known_elsewhere">>;

/** How well a value distinguishes the group: 1 if all here have it and nothing else has. */
export function distinction(count: Counted): number {
  return count.here / Math.max(1, count.of_here) - Math.max(share(count.elsewhere, count.of_elsewhere), share(count.succeeded, count.known_succeeded));
}

function share(part: number, of: number): number {
  return of ? part / of : 0;
}

/** From this distinction on a value tells the group apart. */
const DISTINCT_FROM = 0.3;

/** Paths of values of which nobody would make a condition. */
export const NO_CONDITIONS_OF = /^(case\.version|job\.command|job\.failures|job\.attempts|fault\.type|history\..*)$/;

/** What people look for first: how it ended, what it printed last, what it was given; then what else the failure says. */
const FIRST = [/(^|\.)exit_code$/, /^job\.log_tail$|^fault\.message$/, /^case\.data\b|^item\.data\b|^job\.(inputs|element)\b/, /^fault\.(category|name|signal)$/];

export function lookedForFirst(path: string): number {
  const at = path.startsWith("case.jobs.") ? -1 : FIRST.findIndex((each) => each.test(path));
  return at < 0 ? FIRST.length : at;
}

/** Whether it is shown before the others: people look for it, or there is a value elsewhere that it can be compared with. How
 * an earlier job ended, and who owns a job, say nothing as long as all that is known has the same. */
export function isShownFirst(each: Pick<ValueCount, "path" | "known_elsewhere" | "known_succeeded">): boolean {
  return lookedForFirst(each.path) < FIRST.length || each.known_elsewhere + each.known_succeeded > 0;
}

/** So many are shown before the rest is folded. */
const SHOWN_FIRST = 6;

/** What tells the group apart, in the order to look at it. */
export function distinguishing(values: readonly ValueCount[]): ValueCount[] {
  const found = values.filter((each) => each.value !== null && each.conditions.length > 0 && !NO_CONDITIONS_OF.test(each.path) && valueKindOf(each.path, each) === "distinguishing");
  return found.toSorted((one, other) => lookedForFirst(one.path) - lookedForFirst(other.path) || distinction(other) - distinction(one));
}

/** A handful to look at first, and the rest. What says the same under another path, as the exit code does under three, is shown once. */
export function parted(values: readonly ValueCount[]): { first: ValueCount[]; more: ValueCount[] } {
  const first: ValueCount[] = [];
  const more: ValueCount[] = [];
  const said = new Set<string>();
  for (const each of values) {
    const meaning = `${each.path.slice(each.path.lastIndexOf(".") + 1)} ${JSON.stringify(each.value)}`;
    const shown = isShownFirst(each) && first.length < SHOWN_FIRST && !said.has(meaning);
    (shown ? first : more).push(each);
    said.add(meaning);
  }
  return { first, more };
}

/** `distinguishing`: it tells the group apart. `same`: all here have it, and so do others. `varies`: it differs among those here. */
export type ValueKind = "distinguishing" | "same" | "varies";

/** What a number is of a case, such as the memory that it used, unless all have the same. */
function isMeasure(path: string, count: CountedValue): boolean {
  const shared = count.of_here > 1 && count.here === count.of_here;
  return typeof count.value === "number" && !shared && !path.startsWith("fault.");
}

/** What is known of nothing else tells nothing, but for what the failure says of itself. As long as nothing else has failed or
 * ended well, nothing tells these apart: then what the failure itself says stands for that. */
export function valueKindOf(path: string, count: CountedValue): ValueKind {
  const inAll = count.here === count.of_here;
  const shared = count.here > 1 || count.of_here === 1;
  const known = path.startsWith("fault.") || (count.known_elsewhere ?? count.of_elsewhere) + count.known_succeeded > 0;
  const distinguishes = count.of_elsewhere + count.known_succeeded ? known && distinction(count) >= DISTINCT_FROM && shared && !isMeasure(path, count) : inAll && path.startsWith("fault.");
  return distinguishes ? "distinguishing" : inAll ? "same" : "varies";
}

/** In each part of a tree, what weighs most first. */
export function sortedByWeight(value: Record<string, unknown>, weightOf: (path: string, value: unknown) => number): Record<string, unknown> {
  return weighed(value, weightOf, []).value as Record<string, unknown>;
}

function weighed(value: unknown, weightOf: (path: string, value: unknown) => number, path: readonly string[]): { value: unknown; weight: number } {
  if (!isMap(value)) return { value, weight: weightOf(pathOf(path), value) };
  const parts = Object.entries(value).map(([name, inner]) => ({ name, ...weighed(inner, weightOf, [...path, name]) }));
  parts.sort((one, other) => other.weight - one.weight);
  return { value: Object.fromEntries(parts.map((part) => [part.name, part.value])), weight: parts[0]?.weight ?? 0 };
}

/** How often it occurs here, unless all have it, and elsewhere, if it does and that tells something. */
export function howOften(count: Counted): string {
  const here = count.here === count.of_here ? "" : `${number(count.here)} of ${number(count.of_here)} here`;
  return [here, distinction(count) && elsewhereWords(count)].filter(Boolean).join(", ");
}

export function elsewhereWords(count: Counted): string {
  const failed = count.elsewhere ? `${number(count.elsewhere)} of ${number(count.of_elsewhere)} other failures` : "";
  const well = count.succeeded ? `${number(count.succeeded)} of ${number(count.known_succeeded)} jobs that ended well` : "";
  return [failed, well].filter(Boolean).join(", ");
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A tree of values, taken apart: for each kind, the tree with only those values in it that are of that kind. */
export function splitByKind<Kind extends string>(value: Record<string, unknown>, kindAt: (path: string, value: unknown) => Kind, path: readonly string[] = []): Partial<Record<Kind, Record<string, unknown>>> {
  const found: Partial<Record<Kind, Record<string, unknown>>> = {};
  for (const [name, inner] of Object.entries(value)) {
    const at = [...path, name];
    const parts: Partial<Record<Kind, unknown>> = isMap(inner) ? splitByKind(inner, kindAt, at) : ({ [kindAt(pathOf(at), inner)]: inner } as Partial<Record<Kind, unknown>>);
    for (const [kind, part] of Object.entries(parts) as [Kind, unknown][]) found[kind] = { ...found[kind], [name]: part };
  }
  return found;
}
