/** A list of like objects as a table: a line for each of them, and a column for each of their keys. */
import type { ReactNode } from "react";
import { isNumber } from "@/api/exact-json";
import type { Entry } from "./table-texts";
import { isStored } from "./typed-values";

const COLUMNS_MAX = 12;

/** The objects of a list, if they are like each other: each has more than half of all keys, which are not too many. */
export function likeEntries(value: unknown): Entry[] | null {
  if (!Array.isArray(value) || !value.length) return null;
  const keys = new Set<string>();
  let fewest = Infinity;
  for (const each of value) {
    if (!isEntry(each)) return null;
    const own = Object.keys(each);
    for (const key of own) keys.add(key);
    fewest = Math.min(fewest, own.length);
    // With each entry there are more keys in all, and the one with the fewest has no more.
    if (keys.size > COLUMNS_MAX || 2 * fewest <= keys.size) return null;
  }
  return value;
}

function isEntry(value: unknown): value is Entry {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isNumber(value) && !isStored(value);
}

export function keysOf(entries: readonly Entry[]): string[] {
  return [...new Set(entries.flatMap((each) => Object.keys(each)))];
}

interface EntriesProps {
  keys: readonly string[];
  entries: readonly Entry[];
  cell: (value: unknown, key: string, at: number) => ReactNode;
  /** Whether each line begins with its index in the list. */
  numbered?: boolean;
}

export function EntriesTable({ keys, entries, cell, numbered }: EntriesProps) {
  return (
    <table className="plain-table">
      <thead>
        <tr>
          {numbered && <td />}
          {keys.map((key) => <th key={key} scope="col">{key}</th>)}
        </tr>
      </thead>
      <tbody>
        {entries.map((entry, at) => (
          <tr key={at}>
            {numbered && <th scope="row" className="json-index">{at}</th>}
            {keys.map((key) => <td key={key}>{Object.hasOwn(entry, key) && cell(entry[key], key, at)}</td>)}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
