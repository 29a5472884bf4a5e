/** What is written into a form, as a value of the declared type; and what is wrong with it. A text means here what it means on the
 * command line (`cli/inputs.py`); tests/cli/values_as_written.json has both told the same. */
import { InexactJson, isNumber, NotJson, readExactly, writeExactly } from "@/api/exact-json";
import { numberOrText, readBoolean, readCell, readNumber, type Read } from "./scalar-values";
import { BadTable, separated } from "./table-texts";

export interface Wanted {
  type?: string;
  description?: string;
  required?: boolean;
  default?: unknown;
  /** It is a number because its default is one, and nobody has said so. */
  inferred?: boolean;
  columns?: Record<string, string>;
}

/** A stored file as it stands in values. */
export interface StoredFile {
  $file: string;
  bytes: number;
  name: string;
}

export type Draft = string | StoredFile[];

export function isStored(value: unknown): value is StoredFile {
  return typeof value === "object" && value !== null && typeof (value as { $file?: unknown }).$file === "string";
}

/** How a value is shown in its field, to be edited. */
export function draftOf(wanted: Wanted, value: unknown): Draft {
  if (value === undefined || value === null) return "";
  if (isStored(value)) return [value];
  if (Array.isArray(value) && value.length && value.every(isStored)) return value;
  if (typeof value === "string") return wanted.type || isText(value) ? value : writeExactly(value);
  if (isNumber(value)) return String(value);
  if (wanted.type === "list" && Array.isArray(value) && value.every((each) => typeof each === "string" && each !== "" && each === each.trim() && !each.includes("\n") && isText(each))) return value.join("\n");
  if (typeof value === "object") return writeExactly(value, 2);
  return String(value);
}

/** Whether a text is read as itself where no type is declared. */
function isText(text: string): boolean {
  const read = readText({}, text);
  return "value" in read && read.value === text;
}

const KINDS: Record<string, (value: unknown) => boolean> = {
  string: (value) => typeof value === "string",
  number: isNumber,
  boolean: (value) => typeof value === "boolean",
  list: Array.isArray,
  map: (value) => typeof value === "object" && !Array.isArray(value) && !isNumber(value),
};

/** Whether a value that was there before is of the declared type; the server looks at the others itself. */
export function fits(wanted: Wanted, value: unknown): boolean {
  return value === null ? !wanted.required : (KINDS[wanted.type ?? ""]?.(value) ?? true);
}

/** The value to send; `undefined` leaves it out, so that the default holds. */
export function readDraft(wanted: Wanted, draft: Draft): Read {
  if (Array.isArray(draft)) {
    if (wanted.type === "file") return { value: draft[0] };
    return { value: draft };
  }
  const before = draftOf(wanted, wanted.default);
  if (wanted.default !== undefined && draft === before) return { value: undefined };
  if (wanted.type === "string" ? draft === "" : draft.trim() === "") {
    if (wanted.required) return { problem: "A value is needed" };
    return { value: wanted.type === "string" && wanted.default ? "" : undefined };
  }
  return readWritten(wanted, draft);
}

/** What is written into a field: lists, tables and files can be written there as lines, which a command line has not. */
function readWritten(wanted: Wanted, text: string): Read {
  const isJson = /^\s*[[{]/.test(text);
  switch (wanted.type) {
    case "list":
      return isJson ? readText(wanted, text) : all(lines(text), (line) => readText({}, line));
    case "table":
      return isJson ? readText(wanted, text) : readTable(wanted.columns ?? {}, text);
    case "file":
      return { value: text.trim() };
    case "files": {
      const paths = lines(text);
      return { value: paths.length === 1 ? paths[0] : paths };
    }
    default:
      return readText(wanted, text);
  }
}

const JSON_KINDS: Record<string, [(value: unknown) => boolean, string]> = {
  list: [Array.isArray, 'a list in JSON, such as ["a", "b"]'],
  map: [(value) => KINDS["map"]?.(value) === true && value !== null, 'a map in JSON, such as {"a": 1}'],
  table: [(value) => Array.isArray(value) && value.every((each) => JSON_KINDS["map"]?.[0](each)), "a list of maps in JSON"],
};
const MOMENTS = ["datetime", "date", "time"];

/** What one text means as a value of a type, as on the command line. */
export function readText(wanted: Wanted, text: string): Read {
  const type = wanted.type ?? "";
  if (type === "string") return { value: text };
  if (type === "boolean") return readBoolean(text);
  if (type === "number") return readNumber(text, wanted.inferred ?? false);
  const isJson = /^\s*[[{]/.test(text);
  if (MOMENTS.includes(type) && !isJson) return { value: text.trim() };
  if (!isJson && !type) return { value: dataOrText(text) };
  const [fits, what] = JSON_KINDS[type] ?? [() => true, ""];
  try {
    const value = readExactly(text);
    return fits(value) ? { value } : { problem: `This is not ${what}` };
  } catch (error) {
    if (error instanceof NotJson && !type) return { value: text };
    if (error instanceof InexactJson) return { problem: sentence(error.message) };
    throw error;
  }
}

const WORDS: ReadonlyMap<string, unknown> = new Map<string, unknown>([["true", true], ["false", false], ["null", null]]);

/** A text in quotes is that text, and a number one only if a command that gets it would get the same characters. */
function dataOrText(text: string): unknown {
  if (text.startsWith('"') && text.endsWith('"')) {
    try {
      return readExactly(text);
    } catch {
      return text;
    }
  }
  return WORDS.has(text) ? WORDS.get(text) : numberOrText(text);
}

function lines(text: string): string[] {
  return text.split("\n").map((line) => line.trim()).filter(Boolean);
}

function all(texts: string[], read: (text: string) => Read): Read {
  const found = texts.map(read);
  return found.find((each) => "problem" in each) ?? { value: found.map((each) => ("value" in each ? each.value : undefined)) };
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function readTable(columns: Record<string, string>, text: string): Read {
  try {
    const { names, rows } = separated(text);
    const missing = Object.keys(columns).find((name) => !names.includes(name));
    if (missing !== undefined) return { problem: `The table has no column “${missing}”` };
    return { value: rows.map(({ line, cells }) => Object.fromEntries(names.map((name, at) => [name, cellValue(columns, name, cells[at] ?? "", line)]))) };
  } catch (error) {
    if (error instanceof BadTable) return { problem: `Line ${error.line}: ${error.message}` };
    throw error;
  }
}

function cellValue(columns: Record<string, string>, name: string, cell: string, line: number): unknown {
  const read = readCell(columns, name, cell);
  if ("problem" in read) throw new BadTable(line, `${name}: ${read.problem}`);
  return read.value;
}

const YES_OR_NO_WORDS = "^(?:boolean|bool|yes or no|yes/no|yes-no|true or false)\\s*";
const YES_OR_NO = new RegExp(`${YES_OR_NO_WORDS}(?:[:;,.?(-][\\s\\S]*)?$`, "i");
const BEGINS_WITH_YES_OR_NO = new RegExp(`${YES_OR_NO_WORDS}[:;,.?(-]?\\s*`, "i");

/** Whether a field of a user task is said to be answered by yes or no. */
export function isYesOrNo(description: string): boolean {
  return YES_OR_NO.test(description.trim());
}

/** A task that asks for one yes or no, or only whether something may be done: it is approved or rejected. */
export function isApproval(task: { title: string; fields: Record<string, string> }): boolean {
  const fields = Object.values(task.fields);
  return fields.length ? fields.length === 1 && isYesOrNo(fields[0] ?? "") : task.title.trim().endsWith("?");
}

/** The description of such a field without those words: `yes or no: may it go out?` asks `may it go out?`. */
export function withoutYesOrNo(description: string): string {
  return description.trim().replace(BEGINS_WITH_YES_OR_NO, "");
}
