/** How a rule that runs a job again is ended, and why a rule cannot be saved, by the case at hand. */
import { readTerms } from "@/components/recovery/conditions";

const COUNTED = /^([\w.]+) (<=?) (\d+)$/;
const TRIES = 3;

type Context = Record<string, unknown> | undefined;

function valueAt(context: Context, path: string): number | null {
  const found = path.split(".").reduce<unknown>((value, name) => (typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined), context);
  return typeof found === "number" ? found : null;
}

export interface TryLimit {
  condition: string;
  label: string;
  /** Why it is another one than is usual. */
  note: string;
}

/** The bound that the server advises, if the case at hand is within it; else one that lets this case have three more tries. */
export function tryLimitFor(advised: string, context: Context): TryLimit {
  const [, path = "", operator = "", most = ""] = COUNTED.exec(advised) ?? [];
  const now = path ? valueAt(context, path) : null;
  const isWithin = now === null || (operator === "<=" ? now <= Number(most) : now < Number(most));
  if (isWithin) return { condition: advised, label: "End it after three tries", note: "" };
  const last = operator === "<=" ? now + TRIES - 1 : now + TRIES;
  return { condition: `${path} ${operator} ${last}`, label: "End it after three more tries", note: `The case at hand is beyond the usual bound, ${advised}: there ${path} is ${now} already.` };
}

const NOT_HELD = "the condition does not hold for the case at hand";

/** Why the server would refuse the rule, in the words that stand at the buttons. */
export function refusalWords(breaks: string, condition: string, context: Context): string {
  if (breaks.startsWith(NOT_HELD)) {
    const beyond = readTerms(condition).flatMap(({ path = "", operator, literal }) => {
      const now = valueAt(context, path);
      const most = Number(literal);
      if (now === null || !Number.isFinite(most) || (operator !== "<=" && operator !== "<")) return [];
      return (operator === "<=" ? now <= most : now < most) ? [] : [`${path} is ${now} there`];
    });
    return `The condition does not hold for the case at hand${beyond.length ? `: ${beyond.join(", ")}` : ""}. Change it, or choose another case.`;
  }
  if (/cornerstone/i.test(breaks)) return "It would break a cornerstone, a failure that another rule was made for: narrow the condition.";
  return `${breaks.charAt(0).toUpperCase()}${breaks.slice(1)}.`;
}
