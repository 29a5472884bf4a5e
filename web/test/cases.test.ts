import { describe, expect, it } from "vitest";
import { fieldTime, withinSpan } from "@/components/time-spans";
import { filtersOf } from "@/pages/cases/condition";

const NOON = new Date(2026, 10, 17, 12, 0);
const day = (at: number) => new Date(2026, 10, at).toISOString();

describe("filters of cases", () => {
  it("are a condition of their own, beside what was typed", () => {
    expect(filtersOf({ where: "strated > 1", status: "failed", flow: "o'hara" })).toBe("status == 'failed' && flow == 'o\\'hara' && parent == null && mends == null");
    expect(filtersOf({ all: true })).toBe("");
  });
  it("count those that wait for a person apart from the others that run", () => {
    expect(filtersOf({ status: "person", all: true })).toBe("status == 'running' && for_person");
    expect(filtersOf({ status: "running", all: true })).toBe("status == 'running' && !for_person");
    expect(filtersOf({ status: "person", all: true }, "status")).toBe("");
  });
  it("know days where the viewer is", () => {
    expect(withinSpan("started", "today", undefined, undefined, NOON)).toEqual([`started >= '${day(17)}'`]);
    expect(withinSpan("ended", "yesterday", undefined, undefined, NOON)).toEqual([`ended >= '${day(16)}'`, `ended < '${day(17)}'`]);
    expect(withinSpan("started", "7 days")).toEqual(["started > ago('7 days')"]);
  });
  it("take two times, one, or none", () => {
    expect(withinSpan("started", "between", "2026-11-02T00:00", "2026-11-05")).toEqual([`started >= '${day(2)}'`, `started < '${day(5)}'`]);
    expect(withinSpan("started", "between", "2026-11-02")).toEqual([`started >= '${day(2)}'`]);
    expect(withinSpan("started", "between", "soon", "")).toEqual([]);
  });
  it("write a time as its field wants it", () => {
    expect(fieldTime(new Date(2026, 10, 17, 8, 5).getTime())).toBe("2026-11-17T08:05");
  });
});
