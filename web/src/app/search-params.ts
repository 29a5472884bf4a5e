/** What a page keeps in its address. Each page says which names it knows; anything else in the address is dropped. */

type Raw = Record<string, unknown>;

export function text(raw: Raw, name: string): string | undefined {
  const value = raw[name];
  if (typeof value === "string" && value !== "") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

export function oneOf<T extends string>(raw: Raw, name: string, choices: readonly T[]): T | undefined {
  const value = text(raw, name);
  return choices.find((choice) => choice === value);
}

export function whole(raw: Raw, name: string): number | undefined {
  const value = Number(raw[name]);
  return raw[name] !== undefined && Number.isFinite(value) ? Math.trunc(value) : undefined;
}

export function flag(raw: Raw, name: string): true | undefined {
  return raw[name] === true || raw[name] === "true" || raw[name] === 1 ? true : undefined;
}

/** What is there of what a page knows, each of it optional. What is not there stays as undefined: the router lets the raw
 * value of a missing name through, such as a view that there is not. */
export function known<T extends object>(found: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return found as { [Name in keyof T]?: Exclude<T[Name], undefined> };
}
