/** An exlet as the text of a file, to be read. What has no word of its own there stands as the model of the flow has it. */
import type { Flow } from "./queries";

type Node = Record<string, unknown>;

const WORDS: Record<string, string> = { memory_bytes: "memory", disk_bytes: "disk", wall_ms: "time", wait_ms: "wait", avoid_hosts: "avoid", when: "if", expected_ms: "expected" };
const UNITS: Record<string, string> = { memory_bytes: "B", disk_bytes: "B", wall_ms: "ms", wait_ms: "ms", expected_ms: "ms", duration: "ms" };
/** The setting that stands behind the word of a primitive. */
const HEADS: Record<string, string> = { write: "values", "re-stage": "way", "retry-later": "level", notify: "message" };
const TARGETED = new Set(["suspend", "continue", "remove"]);
const PLAIN = /^[\p{L}_/.$][\p{L}\p{N} _/.$()+,;=<>~^@-]*$/u;
const OTHERWISE = /^(true|false|null|yes|no|on|off|y|n|~|\.inf|\.nan)$/i;

export function exletText(flow: Flow): string {
  const said = { name: flow.name, ...(flow.description ? { description: flow.description } : {}), steps: stepsIn(flow.body as unknown as Node) };
  return `${lines(said, "").join("\n")}\n`;
}

/** The list of steps, without what every exlet has around it. */
function stepsIn(body: Node): unknown[] {
  const inner = body["kind"] === "scope" && isOnlyContext(body) ? (body["body"] as Node) : body;
  return (inner["kind"] === "sequence" && !inner["when"] ? (inner["body"] as Node[]) : [inner]).map((each, at) => shortStep(each, at));
}

function isOnlyContext(scope: Node): boolean {
  return Object.entries((scope["variables"] ?? {}) as Node).every(([name, value]) => typeof value === "string" && value.includes(`inputs.context.${name}`)) && Object.keys(scope).every((key) => ["kind", "name", "body", "variables"].includes(key));
}

function shortStep(step: Node, at: number): Node {
  const { kind, name, when, ...rest } = step;
  const around = { ...(name === undefined || name === `step-${at + 1}` || String(name).endsWith(".do") ? {} : { name }), ...(isMap(when) ? { if: when["text"] } : {}) };
  if (kind === "mend") return { ...primitive(rest), ...around };
  if (kind === "wait" && typeof rest["duration"] === "number") return { wait: `${rest["duration"]} ms`, ...around };
  if (kind === "job") {
    const { command, resources, ...more } = rest;
    const asked = Object.fromEntries(Object.entries((resources ?? {}) as Node).filter(([key, value]) => key !== "cpus" || value !== 1));
    return { ...around, ...(command === undefined ? {} : { run: command }), ...worded({ ...asked, ...more }) };
  }
  if (kind === "sequence") return { ...around, do: (rest["body"] as Node[]).map(shortStep) };
  return { kind, ...around, ...worded(rest) };
}

function primitive(step: Node): Node {
  const { do: word, target, item, settings, ...rest } = step as Node & { do: string };
  const { resources, ...own } = { ...((settings ?? {}) as Node) };
  const head = HEADS[word];
  const first = TARGETED.has(word) ? (target ?? "item") : head ? own[head] : undefined;
  if (head) delete own[head];
  return { [word]: first ?? null, ...(item ? { item } : {}), ...(word === "write" && target ? { into: target } : {}), ...worded({ ...((resources ?? {}) as Node), ...own, ...rest }) };
}

/** Under the words of files, without what is empty. Activities in it are steps. */
function worded(node: Node): Node {
  return Object.fromEntries(
    Object.entries(node)
      .filter(([, value]) => !(value === null || value === "" || (typeof value === "object" && Object.keys(value).length === 0)))
      .map(([key, value]) => [WORDS[key] ?? key, typeof value === "number" && UNITS[key] ? `${value} ${UNITS[key]}` : inner(value)]),
  );
}

function inner(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each, at) => (isMap(each) && typeof each["kind"] === "string" ? shortStep(each, at) : inner(each)));
  if (!isMap(value)) return value;
  if (typeof value["kind"] === "string") return shortStep(value, 0);
  const keys = Object.keys(value);
  return keys.length === 1 && keys[0] === "text" ? value["text"] : worded(value);
}

function isMap(value: unknown): value is Node {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function lines(value: Node | unknown[], indent: string): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((each) => {
      if (!isMap(each) || !Object.keys(each).length) return [`${indent}- ${scalar(each, indent)}`];
      const [first = "", ...rest] = lines(each, `${indent}  `);
      return [`${indent}- ${first.trimStart()}`, ...rest];
    });
  }
  return Object.entries(value).flatMap(([key, each]) => {
    const name = PLAIN.test(key) && !OTHERWISE.test(key) ? key : JSON.stringify(key);
    const nested = (isMap(each) || Array.isArray(each)) && Object.keys(each).length > 0;
    if (nested) return [`${indent}${name}:`, ...lines(each as Node, `${indent}  `)];
    const text = scalar(each, indent);
    return [text ? `${indent}${name}: ${text}` : `${indent}${name}:`];
  });
}

function scalar(value: unknown, indent: string): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return JSON.stringify(value);
  const folded = value.replace(/\n+$/, "");
  if (folded.includes("\n") && !/^\s/.test(value)) {
    const kept = value.endsWith("\n\n") ? "|+" : value.endsWith("\n") ? "|" : "|-";
    return [kept, ...folded.split("\n").map((line) => (line ? `${indent}  ${line}` : ""))].join("\n");
  }
  return isPlain(value) ? value : JSON.stringify(value);
}

/** A command with an expression is easier to read without quotes, where YAML does without. */
function isPlain(text: string): boolean {
  const rest = text.replace(/\$\{\{[^\n#]*?\}\}/g, "$");
  if (/^\d+ (ms|B)$/.test(text)) return true;
  return !OTHERWISE.test(text) && !/[:#]/.test(text) && text.trim() === text && PLAIN.test(rest.replace(/["'&|*!%?[\]{}]/g, "_")) && !/^["'&|*!%?[\]{}]/.test(text);
}
