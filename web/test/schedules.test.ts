import { describe, expect, it } from "vitest";
import { isZone, moment } from "@/components/format";
import { whenText } from "@/pages/schedules/queries";
import { zonesToChoose } from "@/pages/schedules/rhythm-fields";
import { cronOf, otherRhythm, rhythmOf, rhythmText } from "@/pages/schedules/rhythms";
import { forNextRun, inputsOfNextRun } from "@/pages/schedules/due-values";
import { becameText, CATCH_UP, catchUpText, OVERLAP, overlapProblem, overlapText } from "@/pages/schedules/what-it-does";

describe("rhythms of schedules", () => {
  it.each(["5 * * * *", "15 2 * * *", "0 9 * * mon-fri", "30 6 * * sun", "0 0 31 * *"])("%s is read and written as it was", (cron) => {
    const rhythm = rhythmOf(cron);
    expect(rhythm && cronOf(rhythm)).toBe(cron);
  });

  it.each(["*/5 * * * *", "0 3 * * 1,3", "0 3 1 1 *", "0 3 1 * mon", "61 * * * *", "0 24 * * *", "0 3 0 * *", "@daily", "0 3 * *", ""])("%s stays what somebody wrote", (cron) => {
    expect(rhythmOf(cron)).toBeNull();
    expect(rhythmText(cron)).toBe("");
  });

  it("keep the time of the day when another is chosen, and are said in words", () => {
    expect(otherRhythm("15 2 * * *", "weekdays")).toBe("15 2 * * mon-fri");
    expect(otherRhythm("*/5 * * * *", "week")).toBe("0 3 * * mon");
    expect(["0 9 * * 1-5", "30 6 * * 7", "0 0 31 * *", "5 * * * *"].map(rhythmText)).toEqual(["Monday to Friday at 09:00", "each Sunday at 06:30", "on day 31 of each month at 00:00", "each hour, 5 minutes past"]);
  });
});

it("writes a time as the calendar of a zone has it", () => {
  const at = Date.UTC(2020, 6, 1, 22, 30);
  expect(moment(at, "Europe/Berlin")).toMatch(/Thu.*2020.*00:30$/);
  expect(moment(at + 5000, "America/New_York")).toMatch(/Wed.*18:30:05$/);
  expect(moment(at, "Nowhere/Else")).toMatch(/22:30$/);
  expect([isZone("Asia/Tokyo"), isZone("Nowhere/Else")]).toEqual([true, false]);
});

it("offers the viewer's own time zone first, and the one that a schedule has", () => {
  expect(zonesToChoose("Nowhere/Else", "Asia/Tokyo").slice(0, 3)).toEqual([["Asia/Tokyo", "Asia/Tokyo (yours)"], ["UTC", "UTC"], ["Nowhere/Else", "Nowhere/Else"]]);
  const names = zonesToChoose("UTC", "Asia/Tokyo").map(([name]) => name);
  expect(new Set(names).size).toBe(names.length);
});

it("says what a schedule does that leaves the default out", () => {
  expect(overlapText()).toBe("The next case waits until the last one has ended; of several that wait only the newest is started.");
  expect(whenText({ name: "n", flow: "f", cron: "0 3 * * *" })).toBe("0 3 * * * (UTC)");
  expect(overlapProblem("replace", "all")).not.toBeNull();
  expect(overlapProblem("wait", "all")).toBeNull();
});

it("says in words of its own what each choice does, and what became of a time by it", () => {
  for (const texts of [OVERLAP.map(([each]) => overlapText(each)), OVERLAP.map(([, words]) => words), CATCH_UP.map(([each]) => catchUpText(each))]) {
    expect(new Set(texts).size).toBe(texts.length);
  }
  const left = (["wait", "skip", "replace"] as const).map((overlap) => becameText({ what: "overlapped" }, { overlap }));
  expect(new Set(left).size).toBe(3);
  expect(becameText({ what: "overlapped" })).toBe("left out: it waited for an earlier case, and a newer time took its place");
  expect(becameText({ what: "missed" }, { catch_up: "skip" })).not.toBe(becameText({ what: "missed" }));
});

it("fills the due time into the inputs of the next run", () => {
  const due = { date: "2026-03-29", time: "2026-03-29T03:00:00+02:00", previous: "", name: "nightly" };
  expect(forNextRun("reads-${{ schedule.date }}.csv", due)).toBe("reads-2026-03-29.csv");
  expect(forNextRun({ a: ["${{schedule.name}}", 1], b: "${{ schedule.date + 'x' }}" }, due)).toEqual({ a: ["nightly", 1], b: "(worked out then)" });
  expect(forNextRun("as it is", due)).toBeNull();
  expect(inputsOfNextRun({ n: 1, day: "${{ schedule.date }}", all: ["${{ schedule.time }}"] }, due)).toEqual([["day", "2026-03-29"], ["all", '["2026-03-29T03:00:00+02:00"]']]);
});
