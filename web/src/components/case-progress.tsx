/** How far a case is: how many of its items are done, of all that it has to do as far as that is known. Everywhere the same.
 *
 * Items are jobs, user tasks and calls of other flows, each turn of a loop for itself. A loop counts as one until it begins.
 * What a called case does is counted there. What was skipped is one of all, as in the list of items, and is named: 3 of 7, 3 skipped. */
import { Link } from "@tanstack/react-router";
import type { Schemas } from "@/api/client";
import { number, plural } from "./format";
import { StateBar, type StateCounts } from "./state-badge";

type Counted = Pick<Schemas["CaseView"], "counts" | "to_come" | "status">;

type BegunCounts = StateCounts & Required<Pick<StateCounts, "done" | "running" | "waiting" | "failed" | "stopped">>;

const isLive = (view: Pick<Counted, "status">) => view.status === "running" || view.status === "suspended";

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

function skippedCount(view: Pick<Counted, "counts">): number {
  return sum(view.counts.map((each) => each.skipped));
}

/** What the bar shows: that a case has ended is told before its new counts are there, and then nothing of it runs or waits. */
export function barOf(view: Counted): { counts: StateCounts; rest: number } {
  const counts = caseCounts(view);
  const rest = view.to_come + skippedCount(view);
  return isLive(view) ? { counts, rest } : { counts: { ...counts, running: 0, waiting: 0 }, rest: rest + counts.running + counts.waiting };
}

/** How many rows the list of its items has: with those that were skipped, without what has not begun. */
export function itemCount(view: Pick<Counted, "counts">): number {
  return sum(Object.values(caseCounts(view))) + skippedCount(view);
}

/** The same beside the name of that list: while some have not begun, also of how many. */
export function itemsBegun(view: Counted): number | string {
  const listed = itemCount(view);
  const { all } = progressOf(view);
  return listed === all ? listed : `${number(listed)} of ${number(all)}`;
}

export interface CaseProgressCounts {
  done: number;
  skipped: number;
  all: number;
  /** The counts, in words. */
  short: string;
  /** The same, and what is counted. */
  words: string;
}

export function progressOf(view: Counted): CaseProgressCounts {
  const { done, running, waiting, failed, stopped } = caseCounts(view);
  const skipped = skippedCount(view);
  const live = isLive(view);
  const all = done + running + waiting + failed + stopped + skipped + view.to_come;
  const now: [number, string][] = live ? [[running, "running"], [waiting, "waiting"]] : [[running + waiting, "ended with the case"]];
  const others: [number, string][] = [...now, [failed, "failed"], [stopped, "cancelled"], [skipped, "skipped"], [view.to_come, live ? "not begun" : "never begun"]];
  const rest = others.filter(([count]) => count).map(([count, word]) => `${number(count)} ${word}`);
  const short = `${number(done)} of ${plural(all, "item")} completed${rest.length ? `: ${rest.join(", ")}` : ""}`;
  const words = [
    `${short}.`,
    "Counted are jobs, user tasks and called flows, each turn of a loop for itself.",
    live && view.to_come > 0 && "A loop that has not begun counts as one.",
  ];
  return { done, skipped, all, short, words: words.filter(Boolean).join(" ") };
}

export function CaseProgress({ view }: { view: Counted }) {
  const { done, skipped, all, short, words } = progressOf(view);
  if (!all) return <span />;
  return (
    <span className="case-progress" title={words}>
      <StateBar {...barOf(view)} label="Items" words={short} title={words} />
      <span className="muted number">
        {number(done)}/{number(all)}
        {skipped > 0 && `, ${number(skipped)} skipped`}
      </span>
    </span>
  );
}

/** `6 of 42 items failed`, of a case that has completed all the same: a loop lets them fail, or the flow handles it. Of one that ended
 * otherwise nothing is said here: it says itself why. While a case goes on, what failed may still be mended. */
export function failedText(view: Counted): string {
  const { failed } = caseCounts(view);
  return failed && view.status === "completed" ? `${number(failed)} of ${plural(progressOf(view).all, "item")} failed` : "";
}

/** The same, with the way to them. */
export function FailedItems({ view }: { view: Counted & { id: string } }) {
  const text = failedText(view);
  if (!text) return null;
  return (
    <Link to="/cases/$case" params={{ case: view.id }} search={{ view: "items", state: "failed" }}>
      {text}
    </Link>
  );
}
