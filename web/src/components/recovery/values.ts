/** Values of contexts, compared. */

export interface FlatValue {
  path: string;
  value: unknown;
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** All values that are not maps, with their paths. */
export function flatten(value: unknown, path = ""): FlatValue[] {
  if (isMap(value) && Object.keys(value).length > 0) {
    return Object.entries(value).flatMap(([name, inner]) => flatten(inner, path ? `${path}.${name}` : name));
  }
  return [{ path, value }];
}

export interface ValueDifference {
  path: string;
  left: unknown;
  right: unknown;
}

/** Differences only. */
export function differing(left: unknown, right: unknown): ValueDifference[] {
  const one = new Map(flatten(left).map((each) => [each.path, each.value]));
  const other = new Map(flatten(right).map((each) => [each.path, each.value]));
  return [...new Set([...one.keys(), ...other.keys()])]
    .filter((path) => JSON.stringify(one.get(path)) !== JSON.stringify(other.get(path)))
    .map((path) => ({ path, left: one.get(path), right: other.get(path) }));
}

export function shortValue(value: unknown, most = 80): string {
  if (value === undefined) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
