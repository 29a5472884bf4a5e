/** Exlets as they are composed: a list of steps, read from a flow and written as one. */
import type { Flow, PrimitiveView } from "./queries";
import { flatten, shortValue } from "./values";

export type JsonSchema = Record<string, unknown>;

/** A step of an exlet. `do` is a primitive, or `wait`, which only waits, or `run`, a job. */
export interface ExletStep {
  id: string;
  do: string;
  target?: string;
  item?: string;
  settings: Record<string, unknown>;
}

export interface ExletDraft {
  name: string;
  description: string;
  steps: ExletStep[];
  /** What it is a copy of: the name that it got for that, and what that did. */
  copied?: { name: string; does: string };
}

const ROOTS = ["case", "item", "items", "job", "fault", "outcome", "history", "site", "capacity", "now", "values", "measures", "event", "sources", "trigger"];

let serial = 0;

export function newStep(primitive: string, settings: Record<string, unknown> = {}): ExletStep {
  serial += 1;
  return { id: `s${Date.now().toString(36)}-${serial}`, do: primitive, settings };
}

/** The roots of the context that expressions of the steps read: they become variables of the exlet. */
export function rootsRead(steps: readonly ExletStep[]): string[] {
  const said = [...JSON.stringify(steps.map((each) => [each.settings, each.item])).matchAll(/\$\{\{(.*?)\}\}/g)].map((each) => each[1] as string).join(" ");
  return ROOTS.filter((root) => new RegExp(String.raw`(?<![\w.])${root}(?!\w)`).test(said));
}

function written(step: ExletStep, at: number): Record<string, unknown> {
  const name = `step-${at + 1}`;
  if (step.do === "wait") return { kind: "wait", name, duration: step.settings["duration"] ?? 1000 };
  if (step.do === "run") return { kind: "job", name: step.settings["name"] || name, command: step.settings["command"] ?? "" };
  const settings = Object.fromEntries(Object.entries(step.settings).filter(([, value]) => value !== undefined && value !== "" && !isEmptyMap(value)));
  return {
    kind: "mend",
    name,
    do: step.do,
    ...(step.target ? { target: step.target } : {}),
    ...(step.item ? { item: step.item } : {}),
    ...(Object.keys(settings).length ? { settings } : {}),
  };
}

function isEmptyMap(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
}

export function flowOf(draft: ExletDraft): Flow {
  const steps = { kind: "sequence", name: `${draft.name}.steps`, body: draft.steps.map(written) };
  const roots = rootsRead(draft.steps);
  const variables = Object.fromEntries(roots.map((root) => [root, `\${{ has(inputs.context.${root}) ? inputs.context.${root} : null }}`]));
  const body = roots.length ? { kind: "scope", name: `${draft.name}.exlet`, variables, body: steps } : steps;
  const context = { type: "map", description: "what is known of the case that is mended", required: true };
  return { name: draft.name, exlet: true, description: draft.description, inputs: { context }, body } as unknown as Flow;
}

/** What a step lacks, without which it cannot be done; empty if nothing. */
export function lackOf(step: ExletStep): string {
  return step.do === "run" && String(step.settings["command"] ?? "").trim() === "" ? "no command yet" : "";
}

export function isWhole(steps: readonly ExletStep[]): boolean {
  return steps.every((each) => !lackOf(each));
}

/** The command of a job that is a command and nothing else; null of any other. */
function plainCommand(job: Record<string, unknown>): string | null {
  const { kind: _kind, name: _name, command, resources = {}, limits = {}, ...more } = job;
  const asked = Object.entries(resources as Record<string, unknown>).filter(([key, value]) => key !== "cpus" || value !== 1);
  return typeof command === "string" && !asked.length && isEmptyMap(limits) && !Object.keys(more).length ? command : null;
}

/** The steps of an exlet, if it is a plain list of primitives, commands and waits; null if it does more than can be composed
 * here. */
export function stepsOf(flow: Flow): ExletStep[] | null {
  let body = flow.body as unknown as Record<string, unknown>;
  if (body["kind"] === "scope") {
    if (!Object.keys((body["variables"] ?? {}) as object).every((each) => ROOTS.includes(each))) return null;
    body = body["body"] as Record<string, unknown>;
  }
  const inner = body["kind"] === "sequence" ? (body["body"] as Record<string, unknown>[]) : [body];
  const steps: ExletStep[] = [];
  for (const [at, each] of inner.entries()) {
    const command = each["kind"] === "job" ? plainCommand(each) : null;
    if (command !== null) steps.push(newStep("run", { command, ...(each["name"] === `step-${at + 1}` ? {} : { name: each["name"] }) }));
    else if (each["kind"] === "wait" && typeof each["duration"] === "number") steps.push(newStep("wait", { duration: each["duration"] }));
    else if (each["kind"] === "mend" && each["when"] === undefined) {
      steps.push({ ...newStep(String(each["do"]), { ...(each["settings"] as Record<string, unknown> | undefined) }), target: each["target"] as string | undefined, item: each["item"] as string | undefined });
    } else return null;
  }
  return steps;
}

/** What an exlet does, in words: its primitives in their order. */
export function stepWords(flow: Flow | undefined): string[] {
  const steps = flow ? stepsOf(flow) : null;
  return steps ? steps.map((each) => each.do) : [];
}

/** All primitives that an exlet may do, wherever in it they stand. */
export function primitivesOf(flow: Flow | undefined): string[] {
  const found: string[] = [];
  const walk = (part: unknown) => {
    if (typeof part !== "object" || part === null) return;
    const { kind, do: primitive } = part as Record<string, unknown>;
    if (kind === "mend") found.push(String(primitive));
    Object.values(part).forEach(walk);
  };
  walk(flow?.body);
  return found;
}

export const WAIT: Pick<PrimitiveView, "primitive" | "about"> & { schema: JsonSchema } = {
  primitive: "wait" as PrimitiveView["primitive"],
  about: "Wait before the next step.",
  schema: { properties: { settings: { properties: { duration: { type: "number", minimum: 0, description: "a number of milliseconds" } } } } },
};

/** A job of the exlet, which is no primitive either. */
export const RUN: typeof WAIT = {
  primitive: "run" as PrimitiveView["primitive"],
  about: "Run a command of your own: a shell script, as a job on a pilot. The next step begins when it has ended well.",
  schema: { properties: { settings: { properties: { command: { type: "string" }, name: { type: "string" } } } } },
};

/** What a step is called where people read it. */
export function titleOf(primitive: string): string {
  return primitive === "run" ? "Run a command" : primitive;
}

/** The settings of a primitive, each with the schema of its plain value; the other form is always an expression. */
export function settingsOf(schema: JsonSchema): [string, JsonSchema][] {
  const settings = (schema["properties"] as Record<string, JsonSchema> | undefined)?.["settings"];
  const properties = (settings?.["properties"] ?? {}) as Record<string, JsonSchema>;
  return Object.entries(properties).map(([name, each]) => [name, plainOf(each)]);
}

export function plainOf(schema: JsonSchema): JsonSchema {
  const forms = schema["anyOf"];
  return Array.isArray(forms) ? (forms[0] as JsonSchema) : schema;
}

export function isNeeded(schema: JsonSchema, setting: string): boolean {
  const settings = (schema["properties"] as Record<string, JsonSchema> | undefined)?.["settings"];
  return ((settings?.["required"] ?? []) as string[]).includes(setting);
}

const SET_WORDS: Record<string, string> = { memory_bytes: "memory", disk_bytes: "disk", wall_ms: "time", avoid_hosts: "another-host" };
/** Settings that a name says nothing of. */
const UNNAMED = new Set(["wait_ms", "duration", "message", "target"]);

/** The first word of a command, without its folder: `mkdir` of `/bin/mkdir -p a`. Comments, variables and `set` are none. */
function programOf(command: string): string {
  const lines = command.split("\n").map((each) => each.trim().replace(/^(?:\w+=\S*\s+)*/, "")).filter((each) => each && !each.startsWith("#") && !/^(set|cd|export)\b/.test(each));
  const word = /^[\w./-]+/.exec(lines[0] ?? "")?.[0] ?? "";
  return (word.split("/").at(-1) ?? "").replace(/\.\w+$/, "").replace(/^[^A-Za-z]+/, "") || "run";
}

/** `re-submit-with-SCRATCH`, `re-submit-with-A-and-B`: what the step does, and the first two of what it changes. */
function stepName(step: ExletStep): string {
  if (step.do === "run") return String(step.settings["name"] || programOf(String(step.settings["command"] ?? "")));
  const set = Object.entries(step.settings).flatMap(([name, value]) => {
    if (value === undefined || value === "" || isEmptyMap(value) || UNNAMED.has(name)) return [];
    const inner = typeof value === "object" && value !== null && !Array.isArray(value) ? Object.keys(value) : [name];
    return inner.map((each) => SET_WORDS[each] ?? each);
  });
  const changed = set.slice(0, 2).map((each) => each.replace(/[^\w-]+/g, "-"));
  return changed.length ? `${step.do}-with-${changed.join("-and-")}` : step.do;
}

/** Names that people would choose, from what the steps do. */
export function nameFor(steps: readonly ExletStep[]): string {
  const words = steps.filter((each) => each.do !== "notify");
  return (words.length ? words : steps).slice(0, 3).map(stepName).join("-then-") || "repair";
}

/** The draft with other steps. As long as nobody has given it a name, it is called what it does; a copy keeps the name of a
 * copy, and its description, as long as it does what was copied. */
export function withSteps(draft: ExletDraft, steps: ExletStep[]): ExletDraft {
  const name = steps.length ? nameFor(steps) : "";
  if (draft.copied && draft.name === draft.copied.name) return name === draft.copied.does ? { ...draft, steps } : { name, description: "", steps };
  return { ...draft, steps, name: draft.name === "" || draft.name === nameFor(draft.steps) ? name : draft.name };
}

/** A copy of a repair, to be changed, under a name that no other has. */
export function copyOf(name: string, flow: Flow, taken: readonly string[]): ExletDraft | null {
  const steps = stepsOf(flow);
  if (!steps) return null;
  let serial = 2;
  while (taken.includes(`${name}-${serial}`)) serial += 1;
  return { name: `${name}-${serial}`, description: flow.description ?? "", steps, copied: { name: `${name}-${serial}`, does: nameFor(steps) } };
}

export interface Suggestion {
  label: string;
  value: unknown;
}

const DURATIONS: Suggestion[] = [
  { label: "1 s", value: 1000 },
  { label: "10 s", value: 10_000 },
  { label: "1 min", value: 60_000 },
  { label: "10 min", value: 600_000 },
  { label: "1 h", value: 3_600_000 },
];

/** Values that are chosen by a click, by the name of the setting. */
const SUGGESTIONS: Record<string, Suggestion[]> = {
  wait_ms: [...DURATIONS.slice(0, 4), { label: "longer each time", value: "${{ backoff(duration('1s'), job.failures) }}" }],
  duration: DURATIONS,
  memory_bytes: [
    { label: "twice as much", value: "${{ job.memory_bytes * 2 }}" },
    { label: "half more than it used", value: "${{ int(job.peak_bytes * 1.5) }}" },
    { label: "all of the largest pilot", value: "${{ capacity.largest.memory_bytes }}" },
  ],
  wall_ms: [
    { label: "twice the time", value: "${{ job.wall_ms * 2 }}" },
    { label: "four times", value: "${{ job.wall_ms * 4 }}" },
  ],
  cpus: [{ label: "twice as many", value: "${{ job.cpus * 2 }}" }, { label: "one", value: 1 }],
  disk_bytes: [{ label: "twice as much", value: "${{ job.disk_bytes * 2 }}" }],
  avoid_hosts: [
    { label: "this host", value: ["${{ job.host }}"] },
    { label: "all that failed it", value: "${{ job.hosts }}" },
  ],
  domain: [{ label: "any that can", value: "any" }],
  level: [
    { label: "the next", value: 0 },
    { label: "the first", value: 1 },
    { label: "the second", value: 2 },
  ],
  container: [{ label: "none", value: "none" }],
  message: [
    { label: "what failed, and why", value: "${{ case.id }}: ${{ item.id }} failed: ${{ fault.message }}" },
    { label: "who is mended", value: "${{ case.id }}: ${{ item.id }} is mended" },
  ],
};

export function suggestionsFor(setting: string): Suggestion[] {
  return SUGGESTIONS[setting] ?? [];
}

/** The variables of the job that failed, as its context has them. */
export function variablesOf(context: Record<string, unknown> | undefined): Record<string, string> {
  const data = (context?.["item"] as Record<string, unknown> | undefined)?.["data"] ?? {};
  return Object.fromEntries(Object.entries(data).flatMap(([name, value]) => (/^[A-Za-z_]\w*$/.test(name) && ["string", "number", "boolean"].includes(typeof value) ? [[name, String(value)]] : [])));
}

/** A value of the failed case, and the expression that puts it into a command as one word. */
export interface CaseValue {
  path: string;
  shown: string;
  expression: string;
}

const OF_CASE = [/^case\.data\./, /^item\.data\./, /^job\.(element|host|exit_code)$/, /^fault\.(file|message)$/, /^(case|item)\.id$/];

/** The values of the case that a command may need, what the case was given first. */
export function caseValuesOf(context: Record<string, unknown> | undefined): CaseValue[] {
  const flat = flatten(context ?? {}).filter((each) => ["string", "number", "boolean"].includes(typeof each.value) && each.value !== "" && each.path.split(".").every((part) => /^[A-Za-z_]\w*$/.test(part)));
  return OF_CASE.flatMap((wanted) => flat.filter((each) => wanted.test(each.path))).map((each) => ({ path: each.path, shown: shortValue(each.value, 40), expression: `\${{ quote(${each.path}) }}` }));
}
