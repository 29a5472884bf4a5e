/** Words of mendflow that a newcomer does not know, each with what it means. They are explained where they stand (word.tsx);
 * all of them, with the words of other systems, are in docs/reference/glossary.md. */
export const GLOSSARY = {
  exlet: "A small flow that mends a failure: it is made of primitives, such as suspend, re-submit or wait. Rules say which one is done when.",
  exlets: "Small flows that mend failures: each is made of primitives, such as suspend, re-submit or wait. Rules say which one is done when.",
  primitive: "One step of an exlet: suspend, re-submit with more memory, wait, force-complete, and so on.",
  primitives: "The steps that exlets are made of: suspend, re-submit with more memory, wait, force-complete, and so on.",
  exception: "A moment in the life of a case or of an item at which rules are asked: it is about to start, it failed (abort), it took too long (timeout), and so on.",
  abort: "Rules for abort are asked when something of a case has failed, such as a job. Rules of other kinds are asked at other moments: before an item starts, after it is done, when it takes too long.",
  level: "Jobs that failed for a passing reason wait in levels before they are tried again: in level 1 for a short time, in each higher one for longer. “Try now” tries all in it at once.",
  cornerstone: "A failure that a rule was made for. It is kept with the rule, so that no later change takes the rule away from it unnoticed.",
  "without handlers": "What the flow has for failures and cancellation (its fault handlers, and what undoes work that is done) is not run.",
  cornerstones: "Failures that rules were made for. Each is kept with its rule, so that no later change takes the rule away from it unnoticed.",
  "on trial": "Of a rule: it is asked and recorded, and does nothing. What it would have done stands beside what was done, until somebody puts it in force.",
  "default rules": "Rules for every flow: they are asked where the rules of the flow itself conclude nothing. Their set is called *.",
  context: "All that is known of a failure: the case, the item, the job, what it said, the history, the resources. Conditions of rules read it.",
  "rule tree": "Rules in the order in which they are asked: a rule that holds leads to its exceptions, one that does not to the next. The last that held decides.",
  held: "Something failed that no rule took up, and the case waits for a person instead of failing. Nothing that was completed is lost.",
  pilot: "A process on some machine that fetches jobs from the server, and runs them in its slots.",
  pilots: "Processes on machines that fetch jobs from the server, and run them in their slots.",
  slot: "A place for one running job in a pilot.",
  slots: "Places for running jobs in a pilot, one job in each.",
  item: "One piece of work of a case: a job, a call, a person's task. measure[3] is the item of the fourth pass of a loop.",
  domain: "One server, or several with one store, and all that they serve. Connected domains run parts of each other's flows.",
  gathering: "What happens with the files of a data set: a case of a flow is started for each batch of them.",
  storage: "A folder, a bucket or a server where files lie, known by its address.",
  Key: "A text that names this start. If it is sent twice, by a repeated click or a script that tries again, there is one case, not two.",
  "logical file": "A file that the catalogue knows by a name, such as /store/raw/a.dat, wherever its copies lie. A name never gets other content.",
  "logical name": "The name by which the catalogue knows a file, such as /store/raw/a.dat, wherever its copies lie.",
  XES: "A standard file format (IEEE 1849) for what happened in cases. Programs for process mining, such as ProM or Disco, read it.",
  offered: "Everybody with the task's role is asked, and nobody has claimed it yet. Who claims it does it.",
} as const;

export type GlossaryWord = keyof typeof GLOSSARY;

/** These stand in so many sentences that they are explained only where a page says so. */
const COMMON: readonly GlossaryWord[] = ["context", "domain", "held", "item", "pilot", "pilots", "slot", "slots", "storage"];

const LONGEST_FIRST = (Object.keys(GLOSSARY) as GlossaryWord[]).filter((word) => !COMMON.includes(word)).toSorted((one, other) => other.length - one.length);
const WORDS = new RegExp(`\\b(${LONGEST_FIRST.join("|")})\\b`);

/** The text in parts: the first time that a word of the glossary stands in it, that word is a part of its own. Where a text is
 * not ours, such as a message of a job, `only` says which words can be meant. */
export function glossed(text: string, only?: readonly GlossaryWord[]): (string | { word: GlossaryWord })[] {
  const parts: (string | { word: GlossaryWord })[] = [];
  const seen = new Set<string>();
  for (const part of text.split(new RegExp(WORDS, "g"))) {
    const known = LONGEST_FIRST.includes(part as GlossaryWord) && !seen.has(part) && (!only || only.includes(part as GlossaryWord));
    if (known) seen.add(part);
    if (part) parts.push(known ? { word: part as GlossaryWord } : part);
  }
  return parts;
}
