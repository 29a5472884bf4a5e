/** What a case was given, in short: `table=night02.csv, parts=3`. It tells a case from others of its flow; the whole is told where
 * the pointer rests. */
import type { Schemas } from "@/api/client";
import { isStored } from "./typed-values";

type Given = Pick<Schemas["CaseView"], "inputs"> & Partial<Pick<Schemas["CaseView"], "left_out">>;

const SHOWN = 3;
const CHARS_MAX = 32;
const WHOLE_CHARS_MAX = 400;

/** Files tell most, then what fits into a word; lists and maps come last. */
function rank(value: unknown): number {
  if (isStored(value) || (Array.isArray(value) && value.some(isStored)) || isPath(value)) return 0;
  return typeof value === "object" ? 2 : 1;
}

function isPath(value: unknown): value is string {
  return typeof value === "string" && /^\S*\/[^/\s]+$/.test(value) && !value.includes("://");
}

/** The end of a path, with a sign that more stands before it. */
function pathEnd(path: string): string {
  const at = path.lastIndexOf("/");
  return at > 0 ? `…${path.slice(at)}` : path;
}

function shortText(value: unknown): string {
  if (isStored(value)) return value.name || value.$file.slice(0, 8);
  if (isPath(value)) return pathEnd(value);
  if (Array.isArray(value)) return value.length === 1 ? shortText(value[0]) : `${value.length} ${value.every(isStored) ? "files" : "values"}`;
  const text = typeof value === "string" ? value.replaceAll(/\s+/g, " ") : JSON.stringify(value);
  return text.length > CHARS_MAX ? `${text.slice(0, CHARS_MAX - 1)}…` : text;
}

function wholeText(value: unknown): string {
  const text = isStored(value) ? value.name || value.$file : typeof value === "string" ? value : JSON.stringify(value, (_, each: unknown) => (isStored(each) ? each.name || each.$file : each));
  return text.length > WHOLE_CHARS_MAX ? `${text.slice(0, WHOLE_CHARS_MAX)}…` : text;
}

export interface InputsText {
  short: string;
  whole: string;
}

/** The first few inputs, and all of them one a line. Inputs that a list leaves out, because they are large, are named. */
export function inputsText(view: Given): InputsText {
  const given = Object.entries(view.inputs).filter(([, value]) => value !== null && value !== "");
  const order = given.toSorted(([, one], [, other]) => rank(one) - rank(other));
  const large = (view.left_out ?? []).filter((name) => name.startsWith("inputs.")).map((name) => name.slice("inputs.".length));
  const shown = order.slice(0, SHOWN).map(([name, value]) => `${name}=${shortText(value)}`);
  const more = order.length + large.length - shown.length;
  const short = [...shown, ...(more && shown.length ? [`${more} more`] : large.map((name) => `${name}=…`).slice(0, SHOWN))].join(", ");
  const whole = [...given.map(([name, value]) => `${name}: ${wholeText(value)}`), ...large.map((name) => `${name}: large, its page has it`)].join("\n");
  return { short, whole };
}

export function CaseInputs({ view }: { view: Given }) {
  const { short, whole } = inputsText(view);
  return short ? <span className="case-inputs clip muted" title={whole}>{short}</span> : null;
}
