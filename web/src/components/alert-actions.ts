/** What can be done about an alert, by its kind. Every kind has something: the compiler asks for it. */
import type { Schemas } from "@/api/client";
import { caseAction, drainLevel, goTo, requeue, resumeSite, toCase, toCause, toTeaching, type Action } from "./actions";

export type Alert = Schemas["AlertView"];

const PILOTS = goTo("Pilots", { to: "/pilots" });
const SITES = goTo("Sites", { to: "/sites" }, "sites");
const RETENTION = goTo("Remove old cases", { to: "/administration", search: { view: "retention" } }, "retention_rules");
const WAITING = goTo("Jobs that wait", { to: "/jobs", search: { state: "waiting" } });

const ACTIONS: Record<Alert["kind"], (alert: Alert) => Action[]> = {
  orphan: (alert) => [ofCase(alert), PILOTS],
  "long-job": (alert) => [ofCase(alert, "See its log"), requeue(alert.subject)],
  "pilot-gone": (alert) => [goTo("The pilot", { to: "/pilots", search: { pilot: alert.subject } }), goTo("Jobs that wait", { to: "/jobs", search: { state: "waiting" } })],
  "server-gone": () => [goTo("Cases that run", { to: "/cases", search: { where: "status == 'running'" } })],
  "queue-grows": () => [WAITING, PILOTS, SITES],
  "level-fills": (alert) => [goTo("Their causes", { to: "/failures" }), ...levelOf(alert).map(drainLevel)],
  "limit-unset": (alert) => [goTo("Set the limit", { to: "/administration", search: { view: "limits" } }, "set_limit"), ofCase(alert)],
  "no-pilot": (alert) => [ofCase(alert), PILOTS, caseAction("cancel", alert.case)],
  "case-held": (alert) => [ofCase(alert), ...(alert.group ? ofCause(alert) : []), caseAction("try-again", alert.case), caseAction("cancel", alert.case)],
  "disk-full": (alert) => [...(alert.subject.startsWith("files of ") ? [] : [goTo("The pilot", { to: "/pilots", search: { pilot: alert.subject } })]), RETENTION],
  "not-delivered": () => [goTo("Webhooks", { to: "/administration", search: { view: "webhooks" } }, "webhooks")],
  "site-paused": (alert) => [goTo("The site", { to: "/sites", search: { site: alert.subject } }, "sites"), resumeSite(alert.subject)],
  "site-away": (alert) => [goTo("The site", { to: "/sites", search: { site: alert.subject } }, "sites")],
  failure: (alert) => (alert.case ? [...ofCause(alert), ofCase(alert)] : [goTo("The proposal", { to: "/proposals", search: { proposal: lastPart(alert.id) } })]),
  "rule-errs": (alert) => [ruleOf(alert)],
  "not-started": (alert) => [goTo("The schedule", { to: "/schedules", search: { name: alert.subject } })],
  message: (alert) => (alert.case ? [ofCase(alert)] : []),
};

export function actionsOf(alert: Alert): Action[] {
  return alert.closed_at && alert.kind !== "message" ? ACTIONS[alert.kind](alert).filter((each) => each.kind === "link") : ACTIONS[alert.kind](alert);
}

function ofCase(alert: Alert, label?: string): Action {
  return toCase(alert.case, alert.item, label ?? (alert.item ? "The item" : "The case"));
}

function ofCause(alert: Alert): Action[] {
  return alert.group ? [toTeaching(alert.group), toCause(alert.group, "All of this cause")] : [ofCase(alert)];
}

function lastPart(text: string): string {
  return text.slice(text.lastIndexOf("/") + 1);
}

/** Its subject is `level 2 at server`. */
function levelOf(alert: Alert): string[] {
  const level = /^level (\d+) /.exec(alert.subject)?.[1];
  return level ? [level] : [];
}

/** Its subject is `rules/type/task/number`; the task is `-` where the tree is of the case. */
function ruleOf(alert: Alert): Action {
  const [name = "", type = "", task = "", rule = ""] = alert.subject.split("/");
  return goTo(`Rule ${rule}`, { to: "/rules/$name", params: { name }, search: { tree: `${type}/${task === "-" ? "" : task}`, rule: Number(rule) || undefined } });
}
