/** What the page asks with besides what was typed. */
import { withinSpan } from "@/components/time-spans";
import type { Job } from "./needs";
import type { JobsSearch } from "./search";

const STATES = { waiting: "state == 'available'", running: "state == 'running'", failed: "state == 'failed'", completed: "state == 'completed'" };
/** In the queue, for a pilot to take: nobody suspends them, no pilot has fetched them, and they wait for no time. */
const QUEUED = "!suspended && pilot == null && (not_before == null || not_before <= ago('0s'))";
export const LIVE = "state in ['available', 'running']";

/** Only jobs that ask for as much as one of the samples; what the search has no names for is looked at in the answer. */
function narrowed(samples: readonly Job[]): string {
  const parts = new Set(samples.map(({ spec: { resources } }) => `resources.cpus == ${(resources?.cpus ?? 1).toFixed(6)} && resources.memory == ${resources?.memory_bytes ?? 0}`));
  return [...parts].map((each) => `(${each})`).join(" || ");
}

/** Whether it is asked for some jobs, which may have ended too. */
export function isNarrowed({ where, since, ended }: JobsSearch): boolean {
  return Boolean(where || since || ended);
}

export function filtersOf(search: JobsSearch, samples: readonly Job[]): string {
  const state = search.like ? "waiting" : search.state;
  const parts = [
    state ? STATES[state] : isNarrowed(search) ? "" : LIVE,
    ...withinSpan("submitted", search.since, search.from, search.to),
    ...withinSpan("ended", search.ended, search.endedFrom, search.endedTo),
    search.like && QUEUED,
    search.like && samples.length ? `(${narrowed(samples)})` : "",
  ];
  return parts.filter(Boolean).join(" && ");
}
