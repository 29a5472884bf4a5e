import type { Schemas } from "@/api/client";
import { number } from "./format";
import { StateBar, type StateCounts } from "./state-badge";

type CaseView = Schemas["CaseView"];

/** The items of a case by state. */
export function caseCounts(view: Pick<CaseView, "counts">): StateCounts {
  const found: Required<Pick<StateCounts, "done" | "running" | "waiting" | "failed" | "stopped">> = { done: 0, running: 0, waiting: 0, failed: 0, stopped: 0 };
  for (const each of view.counts) {
    found.done += each.done + each.cached;
    found.running += each.running;
    found.waiting += each.waiting;
    found.failed += each.failed;
    found.stopped += each.cancelled + each.skipped;
  }
  return found;
}

export function CaseProgress({ view }: { view: Pick<CaseView, "counts"> }) {
  const counts = caseCounts(view);
  const all = Object.values(counts).reduce((total, count) => total + count, 0);
  if (!all) return <span />;
  return (
    <span className="case-progress">
      <StateBar counts={counts} label="Items" />
      <span className="muted number">
        {number((counts.done ?? 0) + (counts.failed ?? 0) + (counts.stopped ?? 0))}/{number(all)}
      </span>
    </span>
  );
}
