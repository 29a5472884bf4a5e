/** What tells the failures of a group from others, among the values of their contexts. */
import { number } from "@/components/format";
import { pathOf } from "./conditions";
import type { ValueCount } from "./queries";

export type Counted = Pick<ValueCount, "here" | "of_here" | "elsewhere" | "of_elsewhere">;
type CountedValue = Counted & Partial<Pick<ValueCount, "value">>;

/** How well a value tells the group apart: 1 if all here have it and none elsewhere. */
export function telling(count: Counted): number {
  return count.here / Math.max(1, count.of_here) - (count.of_elsewhere ? count.elsewhere / count.of_elsewhere : 0);
}

const TELLS = 0.3;

/** Of these nobody would make a condition. */
export const NOT_TOLD = /^(case\.version|job\.command)$/;

/** `tells`: it tells the group apart. `same`: all here have it, and so do others. `varies`: it differs among those here. */
export type ValueKind = "tells" | "same" | "varies";

/** What a number is of a case, such as the memory that it used, unless all have the same. */
function isMeasure(path: string, count: CountedValue): boolean {
  const shared = count.of_here > 1 && count.here === count.of_here;
  return typeof count.value === "number" && !shared && !path.startsWith("fault.");
}

/** As long as nothing else has failed, nothing tells these apart: then what the failure itself says stands for that. */
export function kindOf(path: string, count: CountedValue): ValueKind {
  const inAll = count.here === count.of_here;
  const shared = count.here > 1 || count.of_here === 1;
  const tells = count.of_elsewhere ? telling(count) >= TELLS && shared && !isMeasure(path, count) : inAll && path.startsWith("fault.");
  return tells ? "tells" : inAll ? "same" : "varies";
}

/** The most telling first, in each part of a tree. */
export function sorted(value: Record<string, unknown>, weightOf: (path: string, value: unknown) => number): Record<string, unknown> {
  return weighed(value, weightOf, []).value as Record<string, unknown>;
}

function weighed(value: unknown, weightOf: (path: string, value: unknown) => number, path: readonly string[]): { value: unknown; weight: number } {
  if (!isMap(value)) return { value, weight: weightOf(pathOf(path), value) };
  const parts = Object.entries(value).map(([name, inner]) => ({ name, ...weighed(inner, weightOf, [...path, name]) }));
  parts.sort((one, other) => other.weight - one.weight);
  return { value: Object.fromEntries(parts.map((part) => [part.name, part.value])), weight: parts[0]?.weight ?? 0 };
}

/** How often it occurs here, unless all have it, and elsewhere, if that tells something. */
export function howOften(count: Counted): string {
  const here = count.here === count.of_here ? "" : `${number(count.here)} of ${number(count.of_here)} here`;
  return [here, telling(count) && elsewhereWords(count)].filter(Boolean).join(", ");
}

export function elsewhereWords(count: Counted): string {
  if (!count.of_elsewhere) return "";
  return count.elsewhere ? `${number(count.elsewhere)} of ${number(count.of_elsewhere)} elsewhere` : "never elsewhere";
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A tree of values, taken apart: for each kind, the tree with only those values in it that are of that kind. */
export function split<Kind extends string>(value: Record<string, unknown>, kindAt: (path: string, value: unknown) => Kind, path: readonly string[] = []): Partial<Record<Kind, Record<string, unknown>>> {
  const found: Partial<Record<Kind, Record<string, unknown>>> = {};
  for (const [name, inner] of Object.entries(value)) {
    const at = [...path, name];
    const parts: Partial<Record<Kind, unknown>> = isMap(inner) ? split(inner, kindAt, at) : ({ [kindAt(pathOf(at), inner)]: inner } as Partial<Record<Kind, unknown>>);
    for (const [kind, part] of Object.entries(parts) as [Kind, unknown][]) found[kind] = { ...found[kind], [name]: part };
  }
  return found;
}
