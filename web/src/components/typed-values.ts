/** What is written into a form, as a value of the declared type; and what is wrong with it. */

export interface Wanted {
  type?: string;
  description?: string;
  required?: boolean;
  default?: unknown;
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
  if (typeof value === "string") return value;
  if (wanted.type === "list" && Array.isArray(value) && value.every((each) => typeof each === "string" && !each.includes("\n"))) return value.join("\n");
  if (typeof value === "object") return JSON.stringify(value, null, 2);
  return String(value);
}

const KINDS: Record<string, (value: unknown) => boolean> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  boolean: (value) => typeof value === "boolean",
  list: Array.isArray,
  map: (value) => typeof value === "object" && !Array.isArray(value),
};

/** Whether a value that was there before is of the declared type; the server looks at the others itself. */
export function fits(wanted: Wanted, value: unknown): boolean {
  return value === null ? !wanted.required : (KINDS[wanted.type ?? ""]?.(value) ?? true);
}

export type Read = { value: unknown } | { problem: string };

/** The value to send; `undefined` leaves it out, so that the default holds. */
export function readDraft(wanted: Wanted, draft: Draft): Read {
  if (Array.isArray(draft)) {
    if (wanted.type === "file") return { value: draft[0] };
    return { value: draft };
  }
  const before = draftOf(wanted, wanted.default);
  if (wanted.default !== undefined && draft === before) return { value: undefined };
  if (draft.trim() === "") {
    if (wanted.required) return { problem: "A value is needed" };
    return { value: wanted.type === "string" && wanted.default ? "" : undefined };
  }
  return parse(wanted, draft);
}

function parse(wanted: Wanted, text: string): Read {
  switch (wanted.type) {
    case "string":
      return { value: text };
    case "number": {
      const value = /^[-+\d.\s]/.test(text) && !/^\s*[-+]?0[xob]/i.test(text) ? Number(text) : Number.NaN;
      return Number.isFinite(value) ? { value } : { problem: `“${text.trim()}” is no number` };
    }
    case "boolean":
      return text === "true" || text === "false" ? { value: text === "true" } : { problem: "Choose yes or no" };
    case "list":
      return text.trim().startsWith("[") ? json(text, Array.isArray, "a list") : { value: lines(text).map(plain) };
    case "map":
      return json(text, (value) => typeof value === "object" && value !== null && !Array.isArray(value), 'a map, such as {"name": 1}');
    case "table":
      return text.trim().startsWith("[") ? json(text, Array.isArray, "a list of maps") : table(text);
    case "files": {
      const paths = lines(text);
      return { value: paths.length === 1 ? paths[0] : paths };
    }
    case "file":
      return { value: text.trim() };
    default:
      return { value: plain(text) };
  }
}

function lines(text: string): string[] {
  return text.split("\n").map((line) => line.trim()).filter(Boolean);
}

/** A text that is JSON is what it says; any other is itself. */
export function plain(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

function json(text: string, fits: (value: unknown) => boolean, what: string): Read {
  let value: unknown;
  try {
    value = JSON.parse(text) as unknown;
  } catch (error) {
    return { problem: `This is not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
  return fits(value) ? { value } : { problem: `This is not ${what}` };
}

/** Lines with cells between commas or tabs; the first line has the names. */
function table(text: string): Read {
  const rows = text.trim().split(/\r?\n/).map(cells);
  const names = rows[0] ?? [];
  const odd = rows.findIndex((row) => row.length !== names.length);
  if (odd > 0) return { problem: `Line ${odd + 1} has ${rows[odd]?.length} cells, and the first line names ${names.length}` };
  return { value: rows.slice(1).map((row) => Object.fromEntries(names.map((name, at) => [name, plain(row[at] ?? "")]))) };
}

function cells(line: string): string[] {
  const mark = line.includes("\t") ? "\t" : ",";
  const found: string[] = [];
  let cell = "";
  let quoted = false;
  for (let at = 0; at < line.length; at += 1) {
    const sign = line[at];
    if (sign === '"' && quoted && line[at + 1] === '"') {
      cell += '"';
      at += 1;
    } else if (sign === '"') quoted = !quoted;
    else if (sign === mark && !quoted) {
      found.push(cell.trim());
      cell = "";
    } else cell += sign;
  }
  return [...found, cell.trim()];
}

const YES_OR_NO = /^(?:boolean|bool|yes or no|yes\/no|yes-no|true or false)\s*(?:[:;,.?(-][\s\S]*)?$/i;

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
  return description.trim().replace(/^(?:boolean|bool|yes or no|yes\/no|yes-no|true or false)\s*[:;,.?(-]?\s*/i, "");
}
