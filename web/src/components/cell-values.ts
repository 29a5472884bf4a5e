/** The values in the cells of a table of objects, as they are edited: texts and numbers as themselves, lists of them one a line, and
 * all else as JSON. What is left as it was stays the very value. */
import { useState } from "react";
import { isNumber, writeExactly } from "@/api/exact-json";
import { ownProperty } from "./own-properties";
import { readCell, type Read } from "./scalar-values";
import { entriesIn, type Columns } from "./table-texts";
import { readDraft, readText } from "./typed-values";

const isJson = (text: string) => /^\s*[[{]/.test(text);

/** What stands in a line for an element of a list; null if the line would be read as something else. */
function lineOf(value: unknown): string | null {
  const text = typeof value === "string" ? value : writeExactly(value);
  if (text === "" || text !== text.trim() || text.includes("\n") || isJson(text)) return null;
  const read = readText({}, text);
  return "value" in read && writeExactly(read.value) === writeExactly(value) ? text : null;
}

export function cellDraft(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  if (isNumber(value) || typeof value !== "object") return String(value);
  const lines = Array.isArray(value) && value.length ? value.map(lineOf) : [null];
  return lines.includes(null) ? writeExactly(value, 2) : lines.join("\n");
}

/** What was written in the place of a value: of the kind that its column is declared as, else of the kind that it was. */
export function readCellDraft(before: unknown, columns: Columns, name: string, text: string): Read {
  const isObject = typeof before === "object" && before !== null && !isNumber(before);
  if (!isObject && ownProperty(columns, name)) return readCell(columns, name, text);
  if (typeof before === "string") return { value: text };
  if (Array.isArray(before)) return text.trim() ? readDraft({ type: "list" }, text) : { value: [] };
  if (isObject) return readText({ type: "map" }, text);
  if (before === undefined || before === null) return text === "" ? { value: before } : readText({}, text);
  return readText({ type: isNumber(before) ? "number" : "boolean" }, text);
}

/** Where a cell is not right, the text of the form is not either: nobody sends it so. */
const NOT_RIGHT = "\n(a cell is not right)";

interface WrongCell {
  text: string;
  problem: string;
}

/** A list of objects as JSON, of which single cells are edited. What cannot be read stays in its cell, with what is wrong; the
 * text that is `shown` is without it. */
export function useEditedCells(text: string, columns: Columns, onChange: (text: string) => void) {
  const [wrong, setWrong] = useState<Readonly<Record<string, WrongCell>>>({});
  const isWrong = text.endsWith(NOT_RIGHT);
  const shown = isWrong ? text.slice(0, -NOT_RIGHT.length) : text;
  const known = isWrong ? wrong : {};
  const key = (at: number, name: string) => `${at} ${name}`;
  const edit = (at: number, name: string, next: string) => {
    const entries = entriesIn(shown) ?? [];
    const read = readCellDraft(entries[at]?.[name], columns, name, next);
    const others = Object.fromEntries(Object.entries(known).filter(([each]) => each !== key(at, name)));
    const cells = "problem" in read ? { ...others, [key(at, name)]: { text: next, problem: read.problem } } : others;
    const good = "problem" in read ? shown : writeExactly(entries.map((entry, each) => (each === at ? { ...entry, [name]: read.value } : entry)), 2);
    setWrong(cells);
    onChange(Object.keys(cells).length ? good + NOT_RIGHT : good);
  };
  return { shown, isWrong, edit, wrongAt: (at: number, name: string) => ownProperty(known, key(at, name)) };
}
