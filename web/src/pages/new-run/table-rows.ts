/** A table whose first line names inputs: what each of its rows would start, and what is wrong with it, by row and column. */
import type { Schemas } from "@/api/client";
import { nullPrototypeRecord } from "@/components/own-properties";
import { BadTable, separated } from "@/components/table-texts";
import { readDraft } from "@/components/typed-values";

type Inputs = Record<string, Schemas["Input"]>;

export interface StartRow {
  /** The line of the table that it begins in. */
  line: number;
  /** By the names of the columns, as they were written. */
  cells: Record<string, string>;
  /** The inputs of the case; what has an empty cell is left to the flow. */
  values: Record<string, unknown>;
  problems: Record<string, string>;
}

export interface StartTable {
  names: string[];
  rows: StartRow[];
  /** What is wrong with the table itself. */
  problems: string[];
}

export const ROWS_MAX = 500;

export function readStarts(inputs: Inputs, text: string): StartTable {
  const none: StartTable = { names: [], rows: [], problems: [] };
  if (!text.trim()) return none;
  if (text.includes("\uFFFD")) return { ...none, problems: ["This is not UTF-8 text: save the table as CSV in UTF-8."] };
  try {
    const { names, rows } = separated(text);
    const unknown = names.filter((name) => !Object.hasOwn(inputs, name));
    const missing = Object.entries(inputs).flatMap(([name, input]) => (input.required && !names.includes(name) ? [name] : []));
    const problems = [
      ...unknown.map((name) => `The flow has no input “${name}”; its inputs are: ${Object.keys(inputs).join(", ") || "none"}.`),
      ...missing.map((name) => `The column “${name}” is missing: the flow needs it.`),
      ...(rows.length ? [] : ["Below the names of the inputs there is no row."]),
      ...(rows.length > ROWS_MAX ? [`It has ${rows.length} rows; at most ${ROWS_MAX} are started at once.`] : []),
    ];
    const known = names.filter((name) => Object.hasOwn(inputs, name));
    return { names, problems, rows: rows.slice(0, ROWS_MAX).map(({ line, cells }) => readRow(inputs, known, line, new Map(names.map((name, at) => [name, cells[at] ?? ""])))) };
  } catch (error) {
    if (error instanceof BadTable) return { ...none, problems: [`Line ${error.line}: ${error.message}.`] };
    throw error;
  }
}

function readRow(inputs: Inputs, names: readonly string[], line: number, given: ReadonlyMap<string, string>): StartRow {
  const cells = nullPrototypeRecord<string>();
  const values = nullPrototypeRecord<unknown>();
  const problems = nullPrototypeRecord<string>();
  for (const [name, cell] of given) cells[name] = cell;
  for (const name of names) {
    const wanted = inputs[name] as Schemas["Input"];
    const cell = cells[name] ?? "";
    if (cell === "" && !wanted.required) continue;
    const read = cell === "" ? { problem: "A value is needed" } : readDraft({ ...wanted, default: undefined }, wanted.type === "list" ? listLines(cell) : cell);
    if ("problem" in read) problems[name] = read.problem;
    else values[name] = read.value;
  }
  return { line, cells, values, problems };
}

/** In a cell of a sheet a list is written by commas, or one a line as in its field; or in JSON. */
function listLines(cell: string): string {
  return cell.includes("\n") || /^\s*[[{]/.test(cell) ? cell : cell.replaceAll(",", "\n");
}

/** All that is wrong, a sentence each. */
export function problemsOf(table: StartTable): string[] {
  return [...table.problems, ...table.rows.flatMap((row) => Object.entries(row.problems).map(([name, problem]) => `Line ${row.line}, ${name}: ${problem}.`))];
}

const LINK_CHARS_MAX = 5000;

/** The condition that lists these cases: by their ids, or where these are too many for an address, by their flow and the time. */
export function listing(flow: string, ids: readonly string[], since: number): { where: string } | { flow: string; since: "between"; from: string } {
  const where = `id in [${ids.map((id) => `'${id}'`).join(", ")}]`;
  return where.length <= LINK_CHARS_MAX ? { where } : { flow, since: "between", from: new Date(since).toISOString() };
}
