/** Where nothing of a case ran, and how a timeline leaves such stretches out: folded, each of them is as wide as the others,
 * however long it was. All else keeps its scale, so what is zoomed or moved stays exact. */
import type { Span } from "./timeline-drawing";
import type { TimelineRow } from "./queries";

const PLACES = 4096;
/** What is shorter is not worth a mark: of all the time, and by itself. */
const PART_MIN = 0.04;
const IDLE_MS_MIN = 60_000;
/** A folded stretch takes so much of the time in which something ran, and all of them together no more than this. */
const FOLDED_PART = 0.06;
const FOLDED_ALL = 0.4;
const WORK = new Set(["run", "stage", "repair"]);

/** The long stretches in which no item ran, was staged or was mended, in order. Each bar is looked at once: the time is divided
 * into places, and of each place it is known when work in it began first and ended last. */
export function idleStretches(rows: readonly TimelineRow[], whole: Span): Span[] {
  const length = whole.to - whole.from;
  const least = Math.max(IDLE_MS_MIN, length * PART_MIN);
  if (length <= least) return [];
  const begun = new Int32Array(PLACES + 1);
  const first = new Float64Array(PLACES).fill(Infinity);
  const last = new Float64Array(PLACES).fill(-Infinity);
  const placeOf = (at: number) => Math.min(PLACES - 1, Math.max(0, Math.floor(((at - whole.from) / length) * PLACES)));
  for (const row of rows) {
    for (const bar of row.bars) {
      if (!WORK.has(bar.kind)) continue;
      const from = placeOf(bar.start);
      const to = placeOf(bar.end);
      begun[from] = (begun[from] ?? 0) + 1;
      begun[to + 1] = (begun[to + 1] ?? 0) - 1;
      first[from] = Math.min(first[from] ?? Infinity, bar.start);
      last[to] = Math.max(last[to] ?? -Infinity, bar.end);
    }
  }
  const found: Span[] = [];
  let under = 0;
  let since = whole.from;
  let works = false;
  for (let place = 0; place < PLACES; place += 1) {
    const before = under;
    under += begun[place] ?? 0;
    if (!before && !under && first[place] === Infinity) continue;
    works = true;
    if (!before && (first[place] ?? 0) - since >= least) found.push({ from: since, to: first[place] ?? since });
    since = Math.max(since, last[place] ?? since);
  }
  if (!works) return [];
  if (whole.to - since >= least) found.push({ from: since, to: whole.to });
  return found;
}

export function idleMs(stretches: readonly Span[]): number {
  return stretches.reduce((sum, each) => sum + each.to - each.from, 0);
}

/** Whether more than half of the time would show nothing. */
export function isMostlyIdle(stretches: readonly Span[], whole: Span): boolean {
  return idleMs(stretches) * 2 > whole.to - whole.from;
}

/** From a time to where it is drawn, in milliseconds of what is left, and back. Both only ever grow. */
export interface Folding {
  stretches: readonly Span[];
  place: (at: number) => number;
  time: (place: number) => number;
}

export const UNFOLDED: Folding = { stretches: [], place: (at) => at, time: (place) => place };

export function folding(stretches: readonly Span[], whole: Span): Folding {
  if (!stretches.length) return UNFOLDED;
  const work = whole.to - whole.from - idleMs(stretches);
  const folded = Math.max(1, work) * Math.min(FOLDED_PART, FOLDED_ALL / stretches.length);
  let left = 0;
  const steps = stretches.map(({ from, to }) => {
    const step = { from, to, place: from - left, shrinks: folded / (to - from) };
    left += to - from - folded;
    return { ...step, left };
  });
  const place = (at: number) => {
    let gone = 0;
    for (const step of steps) {
      if (at <= step.from) break;
      if (at < step.to) return step.place + (at - step.from) * step.shrinks;
      gone = step.left;
    }
    return at - gone;
  };
  const time = (at: number) => {
    let gone = 0;
    for (const step of steps) {
      if (at <= step.place) break;
      if (at < step.place + folded) return step.from + (at - step.place) / step.shrinks;
      gone = step.left;
    }
    return at + gone;
  };
  return { stretches, place, time };
}

/** The stretches of a span between those that are folded. */
export function workingSpans({ stretches }: Folding, span: Span): Span[] {
  const found: Span[] = [];
  let from = span.from;
  for (const each of stretches) {
    if (each.to <= span.from || each.from >= span.to) continue;
    if (each.from > from) found.push({ from, to: each.from });
    from = each.to;
  }
  if (from < span.to) found.push({ from, to: span.to });
  return found;
}
