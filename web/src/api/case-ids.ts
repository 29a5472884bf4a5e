/** What the ids of cases, and of what is named after them, say. */

/** Where messages start cases, these are called by their numbers in something that is no case itself. */
const ENDPOINT = "-soap";

/** The case that somebody, or a message, has started, and that this one, or what is named after it, belongs to: `night-1a2b3c` of
 * `night-1a2b3c.2`, and `talks-soap.1` of `talks-soap.1.2`. */
export function firstCaseOf(id: string): string {
  const [root = id, number] = id.split(/[./:]/, 2);
  return root.endsWith(ENDPOINT) && number ? `${root}.${number}` : root;
}

/** The id of a decision begins with its case. */
export function caseOfDecision(id: string): string {
  return id.split("/", 1)[0] ?? id;
}

/** The flow of the case that started everything, which ids begin with. */
export function flowOfCase(id: string): string {
  const [root = id] = id.split(/[./:]/, 1);
  return root.slice(0, Math.max(0, root.lastIndexOf("-"))) || root;
}
