/** CSV and TSV as the command line reads them: the first line names the columns, cells are texts unless the flow declares
 * what is in their column, and what is wrong is said with its line. */
import { isNumber, readExactly } from "@/api/exact-json";
import { readCell } from "./scalar-values";

export type Columns = Record<string, string>;
export type Entry = Record<string, unknown>;

export interface TableFlaw {
  line: number;
  message: string;
}

export interface ReadTable {
  names: string[];
  entries: Entry[];
  flaws: TableFlaw[];
}

export const TABLE_BYTES_MAX = 10_000_000;
const FLAWS_MAX = 20;

interface Line {
  at: number;
  cells: string[];
}

/** The separator: that of the file's ending, else the one that the first line has. */
export function separatorOf(text: string, file = ""): string {
  const first = text.split(/\r?\n/).find((line) => line.trim()) ?? "";
  if (/\.tsv$/i.test(file) || (!file && first.includes("\t"))) return "\t";
  return !first.includes(",") && first.includes(";") ? ";" : ",";
}

/** The lines with cells in them; a cell in quotation marks may have separators, line breaks and doubled marks in it. */
function linesOf(text: string, separator: string): { lines: Line[]; flaw?: TableFlaw } {
  const lines: Line[] = [];
  let cells: string[] = [];
  let cell = "";
  let wasQuoted = false;
  let hasQuotes = false;
  let line = 1;
  let began = 1;
  const endCell = () => {
    cells.push(wasQuoted ? cell : cell.trim());
    cell = "";
    wasQuoted = false;
  };
  const endLine = () => {
    endCell();
    if (hasQuotes || cells.some(Boolean)) lines.push({ at: began, cells });
    cells = [];
    hasQuotes = false;
  };
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at] as string;
    if (sign === '"' && !wasQuoted && !cell.trim()) {
      const opened = line;
      cell = "";
      wasQuoted = hasQuotes = true;
      for (at += 1; ; at += 1) {
        if (at >= text.length) return { lines, flaw: { line: opened, message: "a quotation mark is opened here and never closed" } };
        if (text[at] === '"') {
          if (text[at + 1] !== '"') break;
          at += 1;
        } else if (text[at] === "\n") line += 1;
        cell += text[at];
      }
    } else if (sign === separator) endCell();
    else if (sign === "\n") {
      endLine();
      line += 1;
      began = line;
    } else if (sign !== "\r") {
      if (!wasQuoted) cell += sign;
      else if (sign.trim()) return { lines, flaw: { line, message: `after a closing quotation mark stands ${JSON.stringify(sign)}, and not the next separator` } };
    }
  }
  if (cell || cells.length || wasQuoted) endLine();
  return { lines };
}

function headerFlaw(names: string[]): string | null {
  if (names.length === 1 && names[0]?.includes("\t")) return "the columns are separated by tabs; such a table ends in .tsv";
  for (const [at, name] of names.entries()) {
    if (!name) return `column ${at + 1} has no name; the first line has the names of the columns`;
    if (names.indexOf(name) < at) return `column ${at + 1} is called “${name}”, as column ${names.indexOf(name) + 1} is`;
  }
  return null;
}

export interface TableLines {
  names: string[];
  rows: Line[];
  flaws: TableFlaw[];
}

/** The names of the columns and the rows, as texts, without those rows that have more or fewer cells. */
export function tableLines(text: string, file = ""): TableLines {
  const whole = text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  const { lines, flaw } = linesOf(whole, separatorOf(whole, file));
  const [header, ...rows] = lines;
  if (flaw) return { names: header?.cells ?? [], rows: [], flaws: [flaw] };
  if (!header) return { names: [], rows: [], flaws: [{ line: 1, message: "the table is empty; its first line has the names of its columns" }] };
  const names = header.cells;
  const inHeader = headerFlaw(names);
  if (inHeader) return { names, rows: [], flaws: [{ line: header.at, message: inHeader }] };
  const flaws = rows.flatMap(({ at, cells }) => {
    if (cells.length < names.length) return [{ line: at, message: `it has ${cells.length} of ${names.length} columns; “${names[cells.length]}” is missing` }];
    if (cells.length > names.length) return [{ line: at, message: `it has ${cells.length} columns, and the first line names ${names.length}; put a value with the separator in quotation marks` }];
    return [];
  });
  return { names, rows: rows.filter(({ cells }) => cells.length === names.length), flaws };
}

export interface Row {
  /** The line that it begins in. */
  line: number;
  cells: string[];
}

/** A line of a table that is none; the message says what is wrong with it. */
export class BadTable extends Error {
  constructor(readonly line: number, message: string) {
    super(message);
  }
}

/** The same, where the first flaw is an error. */
export function separated(text: string): { names: string[]; rows: Row[] } {
  const { names, rows, flaws } = tableLines(text);
  const [first] = flaws;
  if (first) throw new BadTable(first.line, first.message);
  return { names, rows: rows.map(({ at, cells }) => ({ line: at, cells })) };
}

/** The text with another value in one of its cells, in the row that begins in a line; all others mean what they did. */
export function withCell(text: string, line: number, name: string, value: string): string {
  const { names, rows } = separated(text);
  const separator = separatorOf(text);
  const lines = [names, ...rows.map((row) => row.cells.map((cell, at) => (row.line === line && names[at] === name ? value : cell)))];
  return `${lines.map((cells) => cells.map((cell) => quoted(cell, separator, cells.length === 1 || cells.every((each) => each === ""))).join(separator)).join("\n")}\n`;
}

/** A row whose cells are all empty would be none without quotes. */
function quoted(cell: string, separator: string, isAlone: boolean): string {
  const needs = cell.includes(separator) || /["\n\r]/.test(cell) || cell !== cell.trim() || (isAlone && cell === "");
  return needs ? `"${cell.replaceAll('"', '""')}"` : cell;
}

export function readTable(text: string, columns: Columns = {}, file = ""): ReadTable {
  const { names, rows, flaws: inLines } = tableLines(text, file);
  const flaws = [...inLines];
  const missing = Object.keys(columns).find((name) => !names.includes(name));
  if (missing !== undefined && !flaws.length) flaws.push({ line: 1, message: `there is no column “${missing}”` });
  const entries = rows.map(({ at, cells }) =>
    Object.fromEntries(
      names.map((name, place) => {
        const read = readCell(columns, name, cells[place] ?? "");
        if ("value" in read) return [name, read.value];
        flaws.push({ line: at, message: `column ${name}: ${read.problem}` });
        return [name, null];
      }),
    ),
  );
  if (!rows.length && !flaws.length) flaws.push({ line: 1, message: "the table has no rows" });
  return { names, entries, flaws: flaws.sort((one, other) => one.line - other.line).slice(0, FLAWS_MAX) };
}

/** The entries that a text in a form is, where it is a list of maps. */
export function entriesIn(text: string): Entry[] | null {
  if (!text.trimStart().startsWith("[")) return null;
  try {
    const value = readExactly(text);
    const isTable = Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "object" && each !== null && !Array.isArray(each) && !isNumber(each));
    return isTable ? (value as Entry[]) : null;
  } catch {
    return null;
  }
}

/** Whether a text in a form, one entry a line, looks like a table: each line has as many cells as the first, and several. */
export function looksLikeTable(text: string): boolean {
  if (/^\s*[[{]/.test(text)) return false;
  const { names, entries, flaws } = readTable(text);
  return names.length > 1 && entries.length > 0 && flaws.length === 0;
}
