/** How the jobs of a name differ between two cases, a line for each thing that can be said in words. */
import type { Schemas } from "@/api/client";
import { bytes, duration, number } from "@/components/format";
import { describeWords } from "@/components/state-badge";

type Difference = Schemas["JobDifference"];
type Side = Schemas["JobSide"];

export interface DifferenceLine {
  name: string;
  left: string;
  right: string;
  isCode?: boolean;
}

/** Nothing is said of what one side has not come to: that it was skipped says why it has no command, and took no time. */
export function jobDifferences({ left, right, differences }: Difference): DifferenceLine[] {
  if (!left || !right) return [{ name: "state", left: stateWords(left), right: stateWords(right) }];
  const differs = new Set(differences);
  const lines: DifferenceLine[] = [];
  const add = (name: string, one: string, other: string, isCode = false) => void (one !== other && lines.push({ name, left: one, right: other, isCode }));
  if (differs.has("states") || differs.has("count")) add("state", stateWords(left), stateWords(right));
  if (differs.has("run_ms") && left.run_ms && right.run_ms) add("took", duration(left.run_ms), duration(right.run_ms));
  if (!hasRun(left) || !hasRun(right)) return lines;
  if (differs.has("command")) add("command", ...differingParts(left.command, right.command), true);
  for (const word of ["container", "image"] as const) if (differs.has(word)) add(word, left[word] || "none", right[word] || "none", true);
  for (const name of new Set([...Object.keys(left.resources), ...Object.keys(right.resources)])) add(resourceName(name), resourceText(name, left.resources[name]), resourceText(name, right.resources[name]));
  return lines;
}

function hasRun(side: Side): boolean {
  return side.command !== "" || Object.keys(side.resources).length > 0;
}

function stateWords(side: Side | null): string {
  return side ? describeWords(side.states).replace(/^1 (?=[a-z]+$)/, "") : "not there";
}

function resourceName(name: string): string {
  return name.replace(/_(bytes|ms|s)$/, "").replaceAll("_", " ");
}

function resourceText(name: string, value: unknown): string {
  if (value === undefined || value === null || value === "") return "not said";
  if (typeof value !== "number") return typeof value === "string" ? value : JSON.stringify(value);
  return name.endsWith("_bytes") ? bytes(value) : name.endsWith("_ms") ? duration(value) : name.endsWith("_s") ? duration(value * 1000) : number(value);
}

/** Words that stand around what differs. */
const AROUND = 2;
const LEFT_OUT = "…";

/** Of two texts what differs, each time with a few words around it. Texts of as many words, such as one command with other
 * inputs, are compared word by word; of others, what they begin and end with alike is left out. */
export function differingParts(left: string, right: string): [string, string] {
  const [ours, theirs] = [words(left), words(right)];
  if (ours.length === theirs.length) {
    const at = ours.flatMap((each, place) => (each === theirs[place] ? [] : [place]));
    return [around(ours, at), around(theirs, at)];
  }
  const shorter = Math.min(ours.length, theirs.length);
  let first = 0;
  while (first < shorter && ours[first] === theirs[first]) first += 1;
  let last = 0;
  while (last < shorter - first && ours.at(-1 - last) === theirs.at(-1 - last)) last += 1;
  const middle = (all: readonly string[]) => around(all, Array.from({ length: Math.max(1, all.length - last - first) }, (_, place) => first + place));
  return [middle(ours), middle(theirs)];
}

/** Each with the space that follows it. */
function words(text: string): string[] {
  return text.match(/\S+\s*/g) ?? [];
}

function around(all: readonly string[], places: readonly number[]): string {
  const shown = new Set(places.flatMap((place) => Array.from({ length: 2 * AROUND + 1 }, (_, each) => place - AROUND + each)));
  let text = "";
  for (const [place, word] of all.entries()) {
    if (shown.has(place)) text += word;
    else if (!text.endsWith(`${LEFT_OUT} `)) text += `${LEFT_OUT} `;
  }
  return text.trim();
}
