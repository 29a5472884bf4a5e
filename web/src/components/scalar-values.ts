/** Numbers, yes and no, as they are written into fields and into cells of tables: a text means in both what it means on the command
 * line. */
import { isNumber, numberOf } from "@/api/exact-json";
import { ownProperty } from "./own-properties";

export type Read = { value: unknown } | { problem: string };

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/;
const JSON_NUMBER = /^[ \t\n\r]*(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)[ \t\n\r]*$/;
const DIGITS_MAX = 40;

/** A text that looks like a number is one only if that would be written in the same characters. */
export function numberOrText(text: string): unknown {
  if (!NUMBER.test(text) || text.length > DIGITS_MAX) return text;
  const number = numberOf(text);
  return number !== null && String(number) === text ? number : text;
}

export function readNumber(text: string, inferred: boolean): Read {
  const digits = JSON_NUMBER.exec(text)?.[1];
  if (digits === undefined) return { problem: `“${text.trim()}” is no number` };
  const value = numberOf(digits);
  if (value === null) return { problem: `${text.trim()} has more digits than a number keeps` };
  if (inferred && !isNumber(numberOrText(text.trim()))) {
    return { problem: `It is a number, as its default is, and ${text.trim()} would become ${String(value)}. The flow has to say “type: string” or “type: number”.` };
  }
  return { value };
}

const YES = ["true", "yes", "on", "1"];
const NO = ["false", "no", "off", "0"];

export function readBoolean(text: string): Read {
  const word = text.trim().toLowerCase();
  return YES.includes(word) || NO.includes(word) ? { value: YES.includes(word) } : { problem: `“${text.trim()}” is neither yes nor no` };
}

/** A cell is a text, whatever it looks like, unless the flow declares what is in its column; there an empty one is nothing. */
export function readCell(columns: Readonly<Record<string, string>>, name: string, cell: string): Read {
  const kind = ownProperty(columns, name) ?? "string";
  if (kind === "string") return { value: cell };
  if (kind !== "number" && kind !== "boolean") return { value: cell === "" ? null : cell };
  const text = cell.trim();
  if (text === "") return { value: null };
  return kind === "number" ? readNumber(text, false) : readBoolean(text);
}
