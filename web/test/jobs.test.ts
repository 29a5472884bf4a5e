import { describe, expect, test } from "vitest";
import { completionsOf } from "@/components/where-field";
import { JOB_NAMES } from "@/components/where-names";
import { filtersOf } from "@/pages/jobs/condition";

describe("the list of jobs", () => {
  test("has those that have not ended, unless some are asked for", () => {
    expect(filtersOf({}, [])).toBe("state in ['available', 'running']");
    expect(filtersOf({ where: "attempts > 1" }, [])).toBe("");
    expect(filtersOf({ ended: "1h" }, [])).toBe("ended > ago('1h')");
  });

  test("is narrowed to a day, as that of cases", () => {
    expect(filtersOf({ since: "7 days", state: "failed" }, [])).toBe("state == 'failed' && submitted > ago('7 days')");
    expect(filtersOf({ ended: "between", endedFrom: "2026-11-02T00:00" }, [])).toBe(`ended >= '${new Date(2026, 10, 2).toISOString()}'`);
  });

  test("has columns for times whose names conditions know", () => {
    const offered = completionsOf(JOB_NAMES, "").map((each) => each.label);
    expect(offered).toEqual(expect.arrayContaining(["submitted", "started", "ended"]));
  });
});
