/** What the inputs of a schedule are given for its next run: expressions may use its due time. */

export const DUE_NAMES: readonly (readonly [string, string])[] = [
  ["date", "the day on which it is due"],
  ["time", "the day and the time"],
  ["previous", "the due time before it"],
  ["name", "the name of the schedule"],
];

const EXPRESSION = /\$\{\{([^}]*)\}\}/g;
const PLAIN = /^\s*schedule\.(date|time|previous|name)\s*$/;
/** What stands where an expression is more than a name. */
const LATER = "(worked out then)";

/** A value with the due time of the next run in it; null if nothing in it is other then. */
export function forNextRun(value: unknown, due: Record<string, unknown>): unknown {
  let changes = false;
  const filled = (part: unknown): unknown => {
    if (typeof part === "string") {
      return part.replace(EXPRESSION, (_, inner: string) => {
        changes = true;
        const name = PLAIN.exec(inner)?.[1];
        return name && due[name] !== undefined ? String(due[name]) : LATER;
      });
    }
    if (Array.isArray(part)) return part.map(filled);
    if (typeof part === "object" && part !== null) return Object.fromEntries(Object.entries(part).map(([name, each]) => [name, filled(each)]));
    return part;
  };
  const made = filled(value);
  return changes ? made : null;
}

/** The inputs that are other in each run, as they are in the next one. */
export function inputsOfNextRun(inputs: Record<string, unknown>, due: Record<string, unknown>): [string, string][] {
  return Object.entries(inputs).flatMap(([name, value]): [string, string][] => {
    const made = forNextRun(value, due);
    return made === null ? [] : [[name, typeof made === "string" ? made : JSON.stringify(made)]];
  });
}
