/** Words that somebody typed who does not know how conditions are written. */
import { quoted } from "@/api/queries";
import type { WhereName } from "./where-names";

/** A bracket after a blank, or a mark after a word, is what messages have: "No such file (exit code 1)", "Killed!". */
const CONDITION = /[=<>]|\w\(|^\s*\(|(^|[\s(])!|\bin\s*\[/;
/** More words than this are the text of a message, in which "failed" is a word as any other. */
const WORDS_MAX = 3;

/** The words as a condition: each of them is in one of these places, or is a state as the page calls it. A condition stays as it
 * is, and so does a name that is true or false by itself. */
export function asCondition(typed: string, names: readonly WhereName[], places: readonly string[]): string {
  const words = typed.trim().replace(/\bfor a person\b/gi, "person").split(/\s+/).filter(Boolean);
  if (!words.length || CONDITION.test(typed)) return typed.trim();
  if (words.every((word) => names.some((each) => each.kind === "truth" && each.name === word))) return typed.trim();
  const wanted = (word: string) => {
    const state = stateIn(word, names);
    return state === undefined ? isIn(word, places) : words.length > WORDS_MAX ? `(${state} || ${isIn(word, places)})` : state;
  };
  return words.map(wanted).join(" && ");
}

/** The condition that something is in the state of that word, if it is the word of one. */
function stateIn(word: string, names: readonly WhereName[]): string | undefined {
  for (const { name, words, values } of names) {
    const said = words && Object.hasOwn(words, word.toLowerCase()) ? words[word.toLowerCase()] : undefined;
    if (said !== undefined) return values?.includes(said) ? `${name} == ${quoted(said)}` : said;
  }
  return undefined;
}

function isIn(word: string, places: readonly string[]): string {
  const parts = places.map((place) => `${place}.contains(${quoted(place === "text" ? word.toLowerCase() : word)})`);
  return parts.length > 1 ? `(${parts.join(" || ")})` : parts.join("");
}
