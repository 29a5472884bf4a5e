/** How far a case is: how many of its items are done, of all that it has to do as far as that is known. Everywhere the same.
 *
 * Items are jobs, user tasks and calls of other flows, each turn of a loop for itself. A loop counts as one until it begins.
 * What a called case does is counted there. What was skipped has not to be done, and is not counted. */
import type { Schemas } from "@/api/client";
import { number, plural } from "./format";
import { StateBar, type StateCounts } from "./state-badge";

type Counted = Pick<Schemas["CaseView"], "counts" | "to_come" | "status">;

type BegunCounts = StateCounts & Required<Pick<StateCounts, "done" | "running" | "waiting" | "failed" | "stopped">>;

/** The items that have begun, by state, without those that were skipped. */
export function caseCounts(view: Pick<Counted, "counts">): BegunCounts {
  const found = { done: 0, running: 0, waiting: 0, failed: 0, stopped: 0 };
  for (const each of view.counts) {
    found.done += each.done + each.cached;
    found.running += each.running;
    found.waiting += each.waiting;
    found.failed += each.failed;
    found.stopped += each.cancelled;
  }
  return found;
}

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);

/** How many rows the list of its items has: with those that were skipped, without what has not begun. */
export function itemCount(view: Pick<Counted, "counts">): number {
  return sum(Object.values(caseCounts(view))) + sum(view.counts.map((each) => each.skipped));
}

export interface CaseProgressCounts {
  done: number;
  all: number;
  /** The counts, in words. */
  short: string;
  /** The same, and what is counted. */
  words: string;
}

export function progressOf(view: Counted): CaseProgressCounts {
  const { done, running, waiting, failed, stopped } = caseCounts(view);
  const skipped = sum(view.counts.map((each) => each.skipped));
  const live = view.status === "running" || view.status === "suspended";
  const all = done + running + waiting + failed + stopped + view.to_come;
  const others: [number, string][] = [[running, "running"], [waiting, "waiting"], [failed, "failed"], [stopped, "cancelled"], [view.to_come, live ? "not begun" : "never begun"]];
  const rest = others.filter(([count]) => count).map(([count, word]) => `${number(count)} ${word}`);
  const short = `${number(done)} of ${plural(all, "item")} done${rest.length ? `: ${rest.join(", ")}` : ""}`;
  const words = [
    `${short}.`,
    skipped && `${plural(skipped, "was", "were")} skipped and ${skipped === 1 ? "is" : "are"} not counted.`,
    "Counted are jobs, user tasks and called flows, each turn of a loop for itself.",
    live && view.to_come > 0 && "A loop that has not begun counts as one.",
  ];
  return { done, all, short, words: words.filter(Boolean).join(" ") };
}

export function CaseProgress({ view }: { view: Counted }) {
  const { done, all, short, words } = progressOf(view);
  if (!all) return <span />;
  return (
    <span className="case-progress" title={words}>
      <StateBar counts={caseCounts(view)} rest={view.to_come} label="Items" words={short} title={words} />
      <span className="muted number">
        {number(done)}/{number(all)}
      </span>
    </span>
  );
}
