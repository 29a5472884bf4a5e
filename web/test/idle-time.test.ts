import { describe, expect, it } from "vitest";
import { folding, idleMs, idleStretches, isMostlyIdle, workingSpans } from "@/pages/case/idle-time";
import type { TimelineRow } from "@/pages/case/queries";
import { idleText, scaleOf } from "@/pages/case/timeline-drawing";

const MIN = 60_000;
const HOUR = 60 * MIN;

function row(...bars: [kind: string, start: number, end: number][]): TimelineRow {
  return { item: "a", state: "completed", name: "a", kind: "job", element: "", job: null, bars: bars.map(([kind, start, end]) => ({ kind, start, end, state: "completed" })) } as TimelineRow;
}

const NIGHT = [row(["run", 0, 20 * MIN]), row(["wait", 0, 9 * HOUR], ["run", 9 * HOUR, 9 * HOUR + 10 * MIN]), row(["run", 9 * HOUR + 5 * MIN, 10 * HOUR])];
const WHOLE = { from: 0, to: 10 * HOUR };

describe("stretches in which nothing runs", () => {
  it("are found exactly, and waiting is none of the work", () => {
    expect(idleStretches(NIGHT, WHOLE)).toEqual([{ from: 20 * MIN, to: 9 * HOUR }]);
    expect(isMostlyIdle(idleStretches(NIGHT, WHOLE), WHOLE)).toBe(true);
    expect(idleText({ from: 0, to: 9 * HOUR + 3 * MIN })).toBe("idle 9 h");
  });

  it("are there before the first and after the last as well", () => {
    expect(idleStretches([row(["run", 4 * HOUR, 5 * HOUR])], WHOLE)).toEqual([{ from: 0, to: 4 * HOUR }, { from: 5 * HOUR, to: 10 * HOUR }]);
  });

  it("are not where work is only short of all the time, or where nothing ever ran", () => {
    expect(idleStretches([row(["run", 0, 5 * HOUR]), row(["hold", 0, HOUR], ["repair", 5 * HOUR + MIN, 10 * HOUR])], WHOLE)).toEqual([]);
    expect(idleStretches([row(["wait", 0, 10 * HOUR])], WHOLE)).toEqual([]);
    expect(idleStretches([row(["run", 0, 10_000], ["run", 50_000, 55_000])], { from: 0, to: 55_000 })).toEqual([]);
  });

  it("are found in a moment among very many items", () => {
    const many = Array.from({ length: 100_000 }, (_, at) => row(["wait", 0, at], ["run", at, at + 50 * MIN]));
    const began = performance.now();
    expect(idleStretches(many, WHOLE)).toHaveLength(1);
    expect(performance.now() - began).toBeLessThan(5000);
  });
});

describe("a folded timeline", () => {
  const fold = folding(idleStretches(NIGHT, WHOLE), WHOLE);

  it("leads from times to places and back, and never backwards", () => {
    let before = -Infinity;
    for (const at of [-HOUR, 0, 10 * MIN, 20 * MIN, HOUR, 5 * HOUR, 9 * HOUR, 9 * HOUR + MIN, 10 * HOUR, 12 * HOUR]) {
      expect(fold.time(fold.place(at))).toBeCloseTo(at, 3);
      expect(fold.place(at)).toBeGreaterThan(before);
      before = fold.place(at);
    }
  });

  it("keeps the scale of what ran, and gives it most of the width", () => {
    const { x, at } = scaleOf(WHOLE, fold, 1190);
    expect((x(20 * MIN) - x(10 * MIN)) / (x(9 * HOUR + 30 * MIN) - x(9 * HOUR + 10 * MIN))).toBeCloseTo(0.5, 6);
    expect(x(9 * HOUR) - x(20 * MIN)).toBeLessThan(70);
    expect(x(WHOLE.to)).toBeCloseTo(1190, 6);
    expect(at(x(9 * HOUR + 7 * MIN))).toBeCloseTo(9 * HOUR + 7 * MIN, 3);
  });

  it("says what is between the folds", () => {
    expect(workingSpans(fold, WHOLE)).toEqual([{ from: 0, to: 20 * MIN }, { from: 9 * HOUR, to: 10 * HOUR }]);
    expect(workingSpans(fold, { from: HOUR, to: 2 * HOUR })).toEqual([]);
    expect(idleMs(fold.stretches)).toBe(9 * HOUR - 20 * MIN);
  });
});
