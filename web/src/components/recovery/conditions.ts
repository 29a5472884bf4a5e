/** Conditions as parts that can be pointed at, and as text. The text is what counts: parts are read from it, and a change
 * of a part changes the text. */

export const OPERATORS = ["==", "!=", "<", "<=", ">", ">=", "contains", "starts with", "ends with", "in", "is there"] as const;
export type Operator = (typeof OPERATORS)[number];

export interface Term {
  /** The text of this part, as it stands in the condition. */
  text: string;
  path?: string;
  operator?: Operator;
  /** A literal, as it is written. */
  literal?: string;
}

export const OPERATOR_WORDS: Record<Operator, string> = {
  "==": "is", "!=": "is not", "<": "is below", "<=": "is at most", ">": "is above", ">=": "is at least",
  contains: "contains", "starts with": "begins with", "ends with": "ends with", in: "is one of", "is there": "is there",
};

const CALLS: Partial<Record<Operator, string>> = { contains: "contains", "starts with": "startsWith", "ends with": "endsWith" };

export function literalOf(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(literalOf).join(", ")}]`;
  return value === undefined ? "null" : JSON.stringify(value);
}

/** The parts of a condition between `&&` that stand in no bracket and no text. */
export function splitTerms(condition: string): string[] {
  const parts = partsOf(condition) ?? [condition];
  return parts.map((each) => each.trim()).filter(Boolean);
}

/** Null if there is a choice, `||` or `?`, in no bracket and no text: it has no parts that hold by themselves. */
function partsOf(condition: string): string[] | null {
  const parts: string[] = [];
  let depth = 0;
  let quote = "";
  let from = 0;
  for (let at = 0; at < condition.length; at += 1) {
    const sign = condition[at] as string;
    if (quote) {
      if (sign === "\\") at += 1;
      else if (sign === quote) quote = "";
    } else if (sign === '"' || sign === "'") quote = sign;
    else if ("([{".includes(sign)) depth += 1;
    else if (")]}".includes(sign)) depth -= 1;
    else if (depth === 0 && condition.startsWith("&&", at)) {
      parts.push(condition.slice(from, at));
      from = at + 2;
      at += 1;
    } else if (depth === 0 && (condition.startsWith("||", at) || sign === "?")) return null;
  }
  return [...parts, condition.slice(from)];
}

const PATH = String.raw`[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\["[^"\\]*"\]|\[\d+\])*`;
const LITERAL = String.raw`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|-?\d+(?:\.\d+)?|true|false|null`;
const COMPARED = new RegExp(`^(${PATH})\\s*(==|!=|<=|>=|<|>)\\s*(${LITERAL})$`);
const CALLED = new RegExp(`^(${PATH})\\.(contains|startsWith|endsWith)\\((${LITERAL})\\)$`);
const WITHIN = new RegExp(`^(${PATH})\\s+in\\s+(\\[.*\\])$`);
const THERE = new RegExp(`^has\\((${PATH})\\)$`);

export function readTerm(text: string): Term {
  const compared = COMPARED.exec(text);
  if (compared) return { text, path: compared[1], operator: compared[2] as Operator, literal: compared[3] };
  const called = CALLED.exec(text);
  if (called) {
    const operator = called[2] === "contains" ? "contains" : called[2] === "startsWith" ? "starts with" : "ends with";
    return { text, path: called[1], operator, literal: called[3] };
  }
  const within = WITHIN.exec(text);
  if (within) return { text, path: within[1], operator: "in", literal: within[2] };
  const there = THERE.exec(text);
  if (there) return { text, path: there[1], operator: "is there" };
  return { text };
}

export function readTerms(condition: string): Term[] {
  return splitTerms(condition).map(readTerm);
}

export function writeTerm(path: string, operator: Operator, literal: string): string {
  const call = CALLS[operator];
  if (operator === "is there") return `has(${path})`;
  if (call) return `${path}.${call}(${literal.startsWith('"') ? literal : JSON.stringify(literal)})`;
  if (operator === "in") return `${path} in ${literal.startsWith("[") ? literal : `[${literal}]`}`;
  return `${path} ${operator} ${literal.startsWith("[") ? (splitList(literal)[0] ?? "null") : literal}`;
}

function splitList(literal: string): string[] {
  return literal.slice(1, -1).split(/,\s*(?=(?:[^"]*"[^"]*")*[^"]*$)/).filter(Boolean);
}

export function joinTerms(terms: readonly string[]): string {
  return terms.map((each) => (terms.length > 1 && partsOf(each) === null ? `(${each})` : each)).join(" && ");
}

/** A condition with one more part; the same part is not added twice. */
export function withTerm(condition: string, term: string): string {
  const terms = splitTerms(condition);
  return terms.includes(term) ? condition : joinTerms([...terms, term]);
}

/** The operators that make sense for a literal, the likeliest first. */
export function operatorsFor(literal: string | undefined): Operator[] {
  if (literal?.startsWith('"') || literal?.startsWith("'")) return ["==", "contains", "starts with", "ends with", "!=", "in", "is there"];
  if (literal !== undefined && /^-?\d/.test(literal)) return ["==", "!=", "<", "<=", ">", ">=", "in", "is there"];
  if (literal?.startsWith("[")) return ["in", "==", "is there"];
  return ["==", "!=", "is there"];
}

/** A path as conditions write it: names that are none in CEL, such as `max-depth`, stand in brackets. */
export function pathOf(path: readonly (string | number)[]): string {
  return path
    .map((each, at) => (typeof each === "number" ? `[${each}]` : /^[A-Za-z_]\w*$/.test(each) ? (at ? `.${each}` : each) : `["${each}"]`))
    .join("");
}

/** What a click on a value means: a long text of several lines is not compared as a whole. */
export function termFor(path: string, value: unknown): string {
  if (typeof value === "string" && (value.length > 80 || value.includes("\n"))) {
    const line = value.split("\n").map((each) => each.trim()).filter(Boolean).at(-1) ?? "";
    return writeTerm(path, "contains", JSON.stringify(line.slice(0, 80)));
  }
  return writeTerm(path, "==", literalOf(value));
}

/** The line of a log that the failure is told by: the last one that the message has in it, else the last one, unless only that
 * is asked for. */
export function failingLine(log: string, message: string, { orLast = true } = {}): number {
  const lines = log.split("\n").map((each) => each.trim());
  const told = lines.findLastIndex((each) => each.length > 3 && message.includes(each));
  return told >= 0 || !orLast ? told : lines.findLastIndex((each) => each !== "");
}

/** The part of a line that stays the same in other cases: without numbers, ids and what is around them. */
export function steadyPart(line: string): string {
  const parts = line.split(/\S*\d\S*|"[^"]*"|'[^']*'|\S*\/\S*/).map((each) => each.trim().replace(/[\s:,;([{-]+$/, ""));
  return parts.toSorted((one, other) => other.length - one.length)[0] ?? "";
}
