/** What can be done about something: a page of the app that shows it, or an act of the API. Alerts and the server's
 * sentences offer the same ones. */
import type { LinkProps } from "@tanstack/react-router";
import { api, ask } from "@/api/client";
import { CASE_ACTS, type CaseActName } from "./case-acts";

export interface LinkAction {
  kind: "link";
  label: string;
  link: LinkProps;
  /** An operation of the API: who may not use it has nothing to do there. */
  needs?: string;
}

export interface RequestAction {
  kind: "request";
  label: string;
  needs: string;
  title: string;
  /** What it will do, in sentences. */
  will: string;
  danger?: boolean;
  /** What the button of the question says, where the label alone could be misread. */
  confirm?: string;
  done: string;
  /** What it answers is the id of a case that it has started. */
  startsCase?: boolean;
  run: () => Promise<unknown>;
}

export type Action = LinkAction | RequestAction;

export function goTo(label: string, link: LinkProps, needs?: string): LinkAction {
  return { kind: "link", label, link, needs };
}

export function toCase(id: string, item?: string | null, label?: string): LinkAction {
  return goTo(label ?? (item ? `Item ${item}` : `Case ${id}`), { to: "/cases/$case", params: { case: id }, search: item ? { view: "items", item } : {} });
}

/** To the failures of one cause; `decision` is the one among them that is meant. */
export function toCause(group: string, label = "Its cause in Failures", decision?: string): LinkAction {
  return goTo(label, { to: "/failures/$group", params: { group }, ...(decision && { search: { decision } }) });
}

export function toTeaching(group: string): LinkAction {
  return goTo("Teach a repair", { to: "/failures/$group/teach", params: { group } }, "add_rule");
}

/** To mending this failure, and no other one of its cause. */
export function toMending(group: string, decision: string): LinkAction {
  return goTo("Mend once", { to: "/failures/$group", params: { group }, search: { act: "mend", decision } }, "mend");
}

/** An act on one case, as its page has it. */
export function caseAction(name: CaseActName, id: string): RequestAction {
  const act = CASE_ACTS.find((each) => each.name === name);
  if (!act) throw new Error(`there is no act ${name} on cases`);
  return { kind: "request", label: act.label, needs: act.operation, title: `${act.label}: ${id}`, will: act.will(1), danger: act.danger, confirm: act.danger ? act.asks("the case") : undefined, done: `${act.label}: ${id}`, startsCase: act.operation === "rerun", run: () => act.run(id, "") };
}

export function resumeItem(id: string, item: string): RequestAction {
  return {
    kind: "request", label: "Resume", needs: "resume", title: `Resume ${item}`, will: "It goes on from where it was suspended.", done: `${item} goes on`,
    run: () => ask(api.POST("/api/v1/cases/{case}/resume", { params: { path: { case: id } }, body: { item } })),
  };
}

/** An item that failed and is held. */
export function tryItemAgain(id: string, item: string): RequestAction {
  return {
    kind: "request", label: "Try again", needs: "resume", title: `Try ${item} again`, will: `${item} is tried again as it is; then what needs it goes on. What else waits for a person in the case stays as it is.`, done: `${item} is tried again`,
    run: () => ask(api.POST("/api/v1/cases/{case}/resume", { params: { path: { case: id } }, body: { item } })),
  };
}

export function requeue(job: string): RequestAction {
  const at = job.lastIndexOf("/");
  const path = { case: job.slice(0, at), serial: job.slice(at + 1) };
  return {
    kind: "request", label: "Requeue", needs: "requeue", title: `Requeue ${job}`, will: "The job is taken from its pilot. Another one gets it when this attempt has certainly ended; what it has done so far is lost.", done: `${job} is taken from its pilot`,
    run: () => ask(api.POST("/api/v1/jobs/{case}/{serial}/requeue", { params: { path }, body: {} })),
  };
}

/** Jobs wait together for their next try, by how often each was tried: so others of as many tries begin as well. */
export function drainLevel(level: string): RequestAction {
  return {
    kind: "request", label: "Try now", needs: "drain", title: "Try now", will: "What waits for its next try runs again at once, instead of when its time has come; also in other cases, where it was tried as often.", done: "What waited for another try is tried now",
    run: () => ask(api.POST("/api/v1/levels/{level}/drain", { params: { path: { level } } })),
  };
}

export function resumeSite(name: string): RequestAction {
  return {
    kind: "request", label: "Let it go on", needs: "resume_site", title: `Let site ${name} go on`, will: "The site gets pilots again as soon as jobs wait for some. If they fail as before, it is paused again.", done: `Site ${name} gets pilots again`,
    run: () => ask(api.POST("/api/v1/sites/{name}/resume", { params: { path: { name } } })),
  };
}
