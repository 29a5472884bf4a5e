/** Words of mendflow that a newcomer does not know, each with what it means. They are explained where they stand (word.tsx).
 * Help takes its explanations from here where it has the same word, and docs/reference/glossary.md says the same. */
import { asSentence } from "@/api/errors";

export const EXPLAINED_WORDS = {
  exlet: "a small flow that mends a failure, as a case of its own: it is made of primitives, such as suspend, re-submit or wait. Rules say which one is done when",
  primitive: "one step of an exlet, an order to the case that it mends: suspend, re-submit with more memory, wait, force-complete, and so on",
  exception: "a moment in the life of a case or of an item at which rules are asked: it is about to start, it failed (abort), it took too long (timeout), and so on",
  cornerstone: "a failure that a rule was made for. It is kept with the rule, so that no later change takes the rule away from it unnoticed",
  "on trial": "of a rule: it is asked and recorded, and does nothing. What it would have done stands beside what was done, until somebody puts it in force",
  "default rules": "rules for every flow: they are asked where the rules of the flow itself conclude nothing. Their set is called `*`",
  context: "all that is known of a failure: the case, the item, the job, the fault and what was said, the history, the resources. Conditions of rules read it",
  "rule tree": "rules in the order in which they are asked (ripple-down rules): one that holds leads to its exceptions, one that does not to the next. The last that held decides",
  held: "of a case: something failed that no rule took up, and the case waits for a person instead of failing (`on-unhandled: hold`). Nothing that was completed is lost",
  pilot: "a process on some machine that fetches jobs from a server, and runs them in its slots. It needs no open port",
  slot: "a place for one running job in a pilot",
  item: "one piece of work of a case: a job, a call, a person's task. `align[3]` is the item of the fourth pass of a loop",
  domain: "one server, or several with one store, and all that they serve. Connected domains run parts of each other's flows",
  "logical file": "a file that the catalogue knows by a name, such as `/store/raw/a.dat`, wherever its copies (replicas) lie. A name never gets other content",
  abort: "rules for abort are asked when something of a case has failed, such as a job. Rules of other kinds are asked at other moments: before an item starts, after it is done, when it takes too long",
  level: "jobs that failed for a passing reason wait in levels before they are tried again: in level 1 for a short time, in each higher one for longer. “Try now” tries all in it at once",
  "without handlers": "what the flow has for failures and cancellation (its fault handlers, and what undoes work that is done) is not run",
  gathering: "what happens with the files of a data set: a case of a flow is started for each batch of them",
  storage: "a folder, a bucket or a server where files lie, known by its address",
  Key: "a text that names this start. If it is sent twice, by a repeated click or a script that tries again, there is one case, not two",
  "logical name": "the name by which the catalogue knows a file, such as `/store/raw/a.dat`, wherever its copies lie",
  XES: "a standard file format (IEEE 1849) for what happened in cases. Programs for process mining, such as ProM or Disco, read it",
  offered: "everybody with the task's role is asked, and nobody has claimed it yet. Who claims it does it",
} as const;

const PLURALS = { cornerstones: "cornerstone", exlets: "exlet", pilots: "pilot", primitives: "primitive", slots: "slot" } as const;

export type ExplainedWord = keyof typeof EXPLAINED_WORDS | keyof typeof PLURALS;

/** The word that is explained, and what it means, in a sentence. */
export function explained(word: ExplainedWord): { word: string; sentence: string } {
  const one = word in PLURALS ? PLURALS[word as keyof typeof PLURALS] : (word as keyof typeof EXPLAINED_WORDS);
  return { word: one, sentence: `${asSentence(EXPLAINED_WORDS[one])}.` };
}

/** These stand in so many sentences that they are explained only where a page says so. */
const COMMON: readonly ExplainedWord[] = ["context", "domain", "held", "item", "pilot", "pilots", "slot", "slots", "storage"];

const LONGEST_FIRST = ([...Object.keys(EXPLAINED_WORDS), ...Object.keys(PLURALS)] as ExplainedWord[]).filter((word) => !COMMON.includes(word)).toSorted((one, other) => other.length - one.length);
const WORDS = new RegExp(`\\b(${LONGEST_FIRST.join("|")})\\b`);

/** The text in parts: the first time that an explained word stands in it, that word is a part of its own. Where a text is
 * not ours, such as a message of a job, `only` says which words can be meant. */
export function glossed(text: string, only?: readonly ExplainedWord[]): (string | { word: ExplainedWord })[] {
  const parts: (string | { word: ExplainedWord })[] = [];
  const seen = new Set<string>();
  for (const part of text.split(new RegExp(WORDS, "g"))) {
    const known = LONGEST_FIRST.includes(part as ExplainedWord) && !seen.has(part) && (!only || only.includes(part as ExplainedWord));
    if (known) seen.add(part);
    if (part) parts.push(known ? { word: part as ExplainedWord } : part);
  }
  return parts;
}
