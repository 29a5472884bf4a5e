/** The server's sentences name commands between backticks, for a terminal. Here each of them becomes what does the same in
 * the app: a link, or an act. What only a terminal can do stays a command.
 *
 * A sentence may quote what a job has printed, and that may look like a command, too. So acts on cases are offered only for the
 * case that the sentence is about. */
import { firstCaseOf } from "@/api/case-ids";
import { caseAction, drainLevel, goTo, resumeItem, toCase, toCause, toMending, type Action } from "./actions";
import type { CaseActName } from "./case-acts";
import type { NamedItems } from "./named-items";

/** What the sentence is about: a case, a job, an item; and the cause of its failure, if it has one. */
export interface About {
  subject?: string;
  group?: string;
  /** The failure itself, of those of that cause. */
  decision?: string;
  /** Something in the case failed and waits for a person: who lets it go on has that tried again. */
  held?: boolean;
  /** What stands beside it as a button: the sentence only names that. */
  offered?: string;
  /** The items that it names. */
  named?: NamedItems;
}

const NAME = String.raw`(?:'[^']+'|[^\s']+)`;

function command(words: string, action: (parts: string[], about: About) => Action | null): { is: RegExp; action: typeof action } {
  return { is: new RegExp(`^mendflow ${words.replaceAll("NAME", `(${NAME})`)}$`), action };
}

/** `CASE`, `CASE:ITEM` and `CASE/SERIAL` are of the case. */
export function caseOf(subject: string): string {
  return /^[^:/]*/.exec(subject)?.[0] ?? subject;
}

function place(subject: string): Action {
  const [id = "", item] = subject.split(/:(.*)/s);
  const [job = "", serial] = id.split("/");
  if (item) return toCase(id, item, subject);
  return serial ? goTo(subject, { to: "/jobs", search: { where: `id == '${subject}'` } }) : toCase(job, null, subject);
}

/** Of the same case, or of one that it called. */
function isAbout(id: string, about: About): boolean {
  return about.subject !== undefined && firstCaseOf(id) === firstCaseOf(about.subject);
}

function actOn(name: CaseActName): (parts: string[], about: About) => Action | null {
  return ([id = ""], about) => (isAbout(id, about) ? caseAction(name, caseOf(id)) : null);
}

function resume([id, item]: string[], about: About): Action | null {
  const subject = id ?? about.subject ?? "";
  if (!isAbout(subject, about)) return null;
  const named = item ?? (id ? undefined : /^[^:/]*:(.*)$/s.exec(subject)?.[1]);
  if (named) return resumeItem(caseOf(subject), named);
  return caseAction(about.held ? "try-again" : "resume", caseOf(subject));
}

const COMMANDS = [
  command("resume(?: NAME)?(?: NAME)?", resume),
  command("cancel NAME", actOn("cancel")),
  command("rerun NAME --from-failed", actOn("rerun-failed")),
  command("rerun NAME", actOn("rerun")),
  command("rerun --group NAME", ([group = ""]) => goTo("Try all of this cause again", { to: "/failures/$group", params: { group } }, "apply_rules")),
  command("rules apply NAME", ([group = ""]) => goTo("Apply the rules", { to: "/failures/$group", params: { group } }, "apply_rules")),
  command("failures show NAME", ([group = ""], about) => toCause(group, undefined, about.group === group ? about.decision : undefined)),
  command("mend NAME --exlet \\S+", (_, { group, decision }) => (group && decision ? toMending(group, decision) : null)),
  command("why(?: NAME)?", ([subject], about) => (subject ?? about.subject ? place(subject ?? about.subject ?? "") : null)),
  command("logs NAME", ([job = ""]) => goTo("its log", { to: "/jobs", search: { where: `id == '${job}'`, at: job } })),
  command("rules levels drain NAME", ([level = ""]) => drainLevel(level)),
  command("rules show NAME", ([name = ""]) => goTo("The page of these rules", { to: "/rules/$name", params: { name } })),
  command("rules add", (_, { group }) => (group ? goTo("Teach", { to: "/failures/$group/teach", params: { group } }, "add_rule") : null)),
  command("proposals show NAME", ([proposal = ""]) => goTo("The proposal", { to: "/proposals", search: { proposal } })),
  command("worklist claim NAME", ([id = ""]) => {
    const at = id.lastIndexOf("/");
    return goTo("Open the task", { to: "/worklist/$case/$serial", params: { case: id.slice(0, at), serial: id.slice(at + 1) } });
  }),
  command("limits set NAME COUNT", () => goTo("Set the limit", { to: "/administration", search: { view: "limits" } }, "set_limit")),
  command("admin projects set .*", () => goTo("Projects and quotas", { to: "/administration", search: { view: "projects" } }, "set_project")),
  command("admin sites (?:show|resume) NAME", ([site = ""]) => goTo("The site", { to: "/sites", search: { site } })),
  command("schedules (?:resume|backfill|show) NAME", ([name = ""]) => goTo(`Schedule ${name}`, { to: "/schedules", search: { name } })),
  command("items NAME", ([id = ""]) => goTo("The list of items", { to: "/cases/$case", params: { case: id }, search: { view: "items" } })),
  command("items NAME --state NAME", ([id = "", state = ""]) => goTo(`All that ${state === "failed" ? "failed" : `are ${state}`}`, { to: "/cases/$case", params: { case: id }, search: { view: "items", state } })),
  command("history NAME", ([id = ""]) => goTo("The history", { to: "/cases/$case", params: { case: id }, search: { view: "history" } })),
  command("cases", () => goTo("The list of cases", { to: "/cases" })),
  command("jobs", () => goTo("The list of jobs", { to: "/jobs" })),
  command("pilots", () => goTo("The list of pilots", { to: "/pilots" })),
  command("failures", () => goTo("The list of failures", { to: "/failures" })),
  command("worklist(?: administration)?", () => goTo("The worklist", { to: "/worklist" })),
  command("domains", () => goTo("The list of domains", { to: "/domains" })),
];

/** What the app has for a command; null where only a terminal has it. */
export function actionFor(text: string, about: About = {}): Action | null {
  for (const each of COMMANDS) {
    const found = each.is.exec(text);
    if (found) return each.action(found.slice(1).map((part) => part?.replaceAll("'", "")), about);
  }
  return null;
}

/** The commands that a sentence names. */
export function commandsIn(sentence: string): string[] {
  return sentence.split("`").filter((_, at) => at % 2);
}

/** The sentence up to where it begins to speak of commands. */
export function withoutCommands(sentence: string): string {
  const first = sentence.indexOf("`mendflow ");
  if (first < 0) return sentence;
  const before = sentence.slice(0, first);
  const end = Math.max(before.lastIndexOf(". "), before.lastIndexOf("; "));
  return end < 0 ? before.trimEnd() : `${before.slice(0, end)}.`;
}
