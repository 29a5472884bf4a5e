/** The eight states that the app shows, and the one place that says which state of the API is which. */

export const STATES = ["waiting", "ready", "running", "done", "repairing", "failed", "person", "stopped"] as const;
export type State = (typeof STATES)[number];

export const STATE_WORDS: Record<State, string> = {
  waiting: "waiting",
  ready: "ready",
  running: "running",
  done: "completed",
  repairing: "repairing",
  failed: "failed",
  person: "for a person",
  stopped: "stopped",
};

/** Whatever the API calls a state, of cases, items, jobs, user tasks, decisions, pilots, sites and schedules. */
const FROM_API: Record<string, State> = {
  waiting: "waiting", created: "waiting", scheduled: "waiting", pending: "waiting", silent: "waiting", queued: "waiting",
  ready: "ready", available: "ready", staging: "ready", submitted: "ready", granted: "ready",
  running: "running", active: "running", alive: "running", started: "running", applying: "running",
  done: "done", completed: "done", cached: "done", ok: "done", cured: "done", closed: "done", "in-force": "done",
  repairing: "repairing", mending: "repairing", recovering: "repairing", trial: "repairing",
  failed: "failed", lost: "failed", broken: "failed", rejected: "failed", expired: "failed",
  person: "person", held: "person", offered: "person", claimed: "person", open: "person", asked: "person",
  stopped: "stopped", suspended: "stopped", cancelled: "stopped", skipped: "stopped", withdrawn: "stopped",
  gone: "stopped", ended: "stopped", paused: "stopped", removed: "stopped", draining: "stopped", retired: "stopped",
};

export function stateOf(word: string): State {
  return FROM_API[word] ?? "waiting";
}

/** The word to show: that of the API where it says more than the state does, as in `cancelled` or `cached`. */
export function wordOf(word: string): string {
  const state = stateOf(word);
  const plain = ["completed", "asked", "available", "created", "active", "alive", "held", "person", "silent"];
  return word in FROM_API && !plain.includes(word) ? word : STATE_WORDS[state];
}

interface CaseLike {
  status: string;
  held?: readonly string[];
  tasks_open?: number;
  stopped?: boolean;
}

/** A case that runs, and in which something waits for a person, is for a person; one whose jobs are stopped is stopped. */
export function caseState(view: CaseLike): State {
  if (view.status === "running" && (view.held?.length || view.tasks_open)) return "person";
  if (view.status === "running" && view.stopped) return "stopped";
  return stateOf(view.status);
}

/** How urgent a state is for who looks: the first of a mixed lot stands for it. */
const URGENCY: State[] = ["failed", "person", "repairing", "running", "stopped", "ready", "waiting", "done"];

export function mostUrgent(states: Iterable<State>): State {
  const all = new Set(states);
  return URGENCY.find((state) => all.has(state)) ?? "waiting";
}
