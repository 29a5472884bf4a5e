/** What a schedule does with times that it cannot start at once, in words. What it leaves out is the first of each. */
import type { Schedule, ScheduleSpec } from "./queries";

export type CatchUp = NonNullable<ScheduleSpec["catch_up"]>;
export type Overlap = NonNullable<ScheduleSpec["overlap"]>;

export const CATCH_UP: readonly (readonly [CatchUp, string])[] = [
  ["latest", "the last one that was missed"],
  ["all", "all that were missed"],
  ["skip", "none that was missed"],
];

export const OVERLAP: readonly (readonly [Overlap, string])[] = [
  ["wait", "wait until it has ended"],
  ["skip", "leave the time out"],
  ["allow", "start the next beside it"],
  ["replace", "cancel it, and start the next"],
];

export function catchUpText(catchUp: CatchUp = "latest"): string {
  return {
    latest: "The last of the times that passed is started when a server is back; the others are left out.",
    all: "Each of the times that passed is started when a server is back, the oldest first.",
    skip: "Nothing is started for times that passed; it goes on with the next one.",
  }[catchUp];
}

export function overlapText(overlap: Overlap = "wait", catchUp: CatchUp = "latest"): string {
  return {
    wait: catchUp === "all" ? "The next case waits until the last one has ended; all that wait are started, one after the other." : "The next case waits until the last one has ended; of several that wait only the newest is started.",
    skip: "No case is started; that time is left out.",
    allow: "The next case is started beside it.",
    replace: "The one that runs is cancelled, and then the next is started.",
  }[overlap];
}

type Event = Schedule["history"][number];

/** What became of a due time. What left it out depends on what the schedule does while an earlier case runs, and after a
 * time without a server. */
export function becameText({ what }: Pick<Event, "what">, { overlap = "wait", catch_up: catchUp = "latest" }: Pick<ScheduleSpec, "overlap" | "catch_up"> = {}): string {
  switch (what) {
    case "started":
      return "started";
    case "triggered":
      return "started by hand";
    case "known":
      return "was started before";
    case "refused":
      return "could not be started";
    case "paused":
      return "left out: the schedule was paused";
    case "missed":
      return catchUp === "skip" ? "left out: no server ran" : "left out: no server ran, and only the last such time is started";
    case "overlapped":
      return { wait: "left out: it waited for an earlier case, and a newer time took its place", skip: "left out: an earlier case was running", allow: "left out: an earlier case was running", replace: "left out: an earlier case was being cancelled, and a newer time took its place" }[overlap];
  }
}

/** What contradicts itself: times that are all caught up with overlap. */
export function overlapProblem(overlap: Overlap, catchUp: CatchUp): string | null {
  return catchUp === "all" && (overlap === "skip" || overlap === "replace") ? "All that were missed would overlap: let them wait for each other, or start beside." : null;
}
