/** What a case was given, in short: `night02.csv · parts=3`. It tells a case from others of its flow; the whole is told where
 * the pointer rests. */
import { createContext, useContext } from "react";
import type { Schemas } from "@/api/client";
import { JsonTree } from "./json-tree";
import { isStored } from "./typed-values";

type Given = Pick<Schemas["CaseView"], "inputs"> & Partial<Pick<Schemas["CaseView"], "left_out" | "defaults">>;

const SHOWN = 3;
const CHARS_MAX = 32;
const LIST_CHARS_MAX = 28;
const WHOLE_CHARS_MAX = 400;

type Wanted = Record<string, Schemas["Input"]>;

/** What a case works on: what it was given, and what its flow has for all else. A case itself knows only small defaults; with the
 * inputs that its flow has, all are there, in the flow's order. */
export function effectiveInputs(view: Pick<Given, "inputs" | "defaults">, wanted: Wanted = {}): Record<string, unknown> {
  const named = Object.entries(wanted).filter(([name, input]) => Object.hasOwn(view.inputs, name) || !input.required);
  return { ...Object.fromEntries(named.map(([name, input]) => [name, input.default ?? null])), ...view.defaults, ...view.inputs };
}

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
  if (Array.isArray(value)) return value.length === 1 ? shortText(value[0]) : listText(value);
  if (isRow(value)) return shortText(Object.values(value).find((each) => each !== null && each !== "") ?? "");
  const text = typeof value === "string" ? value.replaceAll(/\s+/g, " ") : JSON.stringify(value);
  return text.length > CHARS_MAX ? `${text.slice(0, CHARS_MAX - 1)}…` : text;
}

function isRow(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isStored(value);
}

/** The first values of a list, as far as they fit, and how many more there are: `[NA12878, NA12891, +6]`. Of a row, its first value. */
function listText(values: readonly unknown[]): string {
  const shown: string[] = [];
  for (const each of values) {
    const next = Array.isArray(each) ? `${each.length} values` : shortText(each);
    if ([...shown, next].join(", ").length > LIST_CHARS_MAX) break;
    shown.push(next);
  }
  if (!shown.length) return `${values.length} ${values.every(isStored) ? "files" : "values"}`;
  return `[${[...shown, ...(shown.length < values.length ? [`+${values.length - shown.length}`] : [])].join(", ")}]`;
}

function wholeText(value: unknown): string {
  const text = isStored(value) ? value.name || value.$file : typeof value === "string" ? value : JSON.stringify(value, (_, each: unknown) => (isStored(each) ? each.name || each.$file : each));
  return text.length > WHOLE_CHARS_MAX ? `${text.slice(0, WHOLE_CHARS_MAX)}…` : text;
}

export interface InputsText {
  short: string;
  whole: string;
}

/** What says enough without its input's name: a file, a word, or some of them. A number or `true` does not. */
function isPlain(value: unknown): boolean {
  if (isStored(value) || isPath(value)) return true;
  if (Array.isArray(value)) return value.length > 0 && value.every(isPlain) && !/ (files|values)$/.test(shortText(value));
  return typeof value === "string" && /^\p{L}/u.test(value) && !/^(true|false|yes|no|on|off|none|null|all|any|auto|default|nan)$/i.test(value);
}

/** Of each flow, the inputs that its cases were not all given alike; of a flow of which one case is shown, nothing is known. */
export type Differing = ReadonlyMap<string, ReadonlySet<string>>;

export function differingInputs(cases: readonly (Given & { flow: string })[]): Differing {
  const found = new Map<string, Set<string>>();
  for (const flow of new Set(cases.map((each) => each.flow))) {
    const all = cases.filter((each) => each.flow === flow).map((each) => effectiveInputs(each));
    const names = new Set(all.flatMap((each) => Object.keys(each)));
    const differ = [...names].filter((name) => new Set(all.map((each) => JSON.stringify(each[name]))).size > 1);
    if (differ.length) found.set(flow, new Set(differ));
  }
  return found;
}

/** The first few inputs, and all of them one a line. What the flow has for what nobody gave is shown if nothing was given; what
 * all have alike, only if there is nothing else. Inputs that a list leaves out, because they are large, are named. */
export function inputsText(view: Given, differing?: ReadonlySet<string>): InputsText {
  const filled = (values: Given["inputs"]) => Object.entries(values).filter(([, value]) => value !== null && value !== "");
  const telling = (values: [string, unknown][]) => {
    const found = values.filter(([name]) => differing?.has(name));
    return (found.length ? found : values).toSorted(([, one], [, other]) => rank(one) - rank(other));
  };
  const given = filled(view.inputs);
  const others = filled(view.defaults ?? {});
  const large = (view.left_out ?? []).filter((name) => name.startsWith("inputs.")).map((name) => name.slice("inputs.".length));
  const isGiven = given.length + large.length > 0;
  const order = telling(isGiven ? given : others);
  const shown = order.slice(0, SHOWN).map(([name, value]) => (isPlain(value) ? shortText(value) : `${name}=${shortText(value)}`));
  const more = order.length + large.length - shown.length;
  const short = [...shown, ...(more && shown.length ? [`${more} more`] : large.map((name) => `${name}=…`).slice(0, SHOWN))].join(" · ");
  const whole = [...given.map(([name, value]) => `${name}: ${wholeText(value)}`), ...others.map(([name, value]) => `${name}: ${wholeText(value)} (default)`), ...large.map((name) => `${name}: large, its page has it`)].join("\n");
  return { short: short && !isGiven ? `default: ${short}` : short, whole };
}

/** Which inputs tell the cases of a list apart. */
export const DifferingContext = createContext<Differing>(new Map());

export function CaseInputs({ view }: { view: Given & { flow?: string } }) {
  const { short, whole } = inputsText(view, useContext(DifferingContext).get(view.flow ?? ""));
  return short ? <span className="case-inputs clip muted" title={whole}>{short}</span> : null;
}

/** What a case works on, as a tree; what nobody gave it is marked. */
export function InputsTree({ view, wanted, label = "Inputs", open, of }: { view: Given; wanted?: Wanted; label?: string; open?: number; of?: string }) {
  return <JsonTree value={effectiveInputs(view, wanted)} label={label} open={open} of={of} beside={(path) => path.length === 1 && !Object.hasOwn(view.inputs, String(path[0])) && <span className="chip" title="Nobody gave it: it is the default of the flow">default</span>} />;
}
