import { known, oneOf, text } from "@/app/search-params";

export const JOB_STATES = ["waiting", "running", "failed", "completed"] as const;

/** What the page keeps in its address: which jobs, those that wait for the same as some, and the one that is looked at. */
export function search(raw: Record<string, unknown>) {
  return known({
    state: oneOf(raw, "state", JOB_STATES),
    where: text(raw, "where"),
    /** Jobs, separated by commas: only what waits with needs like theirs. */
    like: text(raw, "like"),
    at: text(raw, "at"),
  });
}
