import { known, oneOf, text } from "@/app/search-params";
import { SPANS } from "@/components/time-spans";

export const JOB_STATES = ["waiting", "running", "failed", "completed"] as const;

/** What the page keeps in its address: which jobs, those that wait for the same as some, and the one that is looked at. */
export function search(raw: Record<string, unknown>) {
  return known({
    state: oneOf(raw, "state", JOB_STATES),
    where: text(raw, "where"),
    /** When it was submitted; `from` and `to` if between two times. */
    since: oneOf(raw, "since", SPANS),
    from: text(raw, "from"),
    to: text(raw, "to"),
    /** When it ended. */
    ended: oneOf(raw, "ended", SPANS),
    endedFrom: text(raw, "endedFrom"),
    endedTo: text(raw, "endedTo"),
    /** Jobs, separated by commas: only what waits with needs like theirs. */
    like: text(raw, "like"),
    at: text(raw, "at"),
  });
}

export type JobsSearch = ReturnType<typeof search>;
