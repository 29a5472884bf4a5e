import { expect, it } from "vitest";
import { ago, bytes, duration, plural, ticking } from "@/components/format";

it("writes durations with two units", () => {
  expect([40, 3200, 12_345, 65_000, 65_700, 7_500_000, 90_000_000].map(duration)).toEqual(["40 ms", "3.2 s", "12.3 s", "1 min 5 s", "1 min 6 s", "2 h 5 min", "1 d 1 h"]);
});
it("lets what runs tick in whole seconds", () => {
  expect([40, 3200, 65_700].map(ticking)).toEqual(["0 s", "3 s", "1 min 5 s"]);
});
it("writes past and coming times", () => {
  expect(ago(1000, 62_000)).toBe("1 min ago");
  expect(ago(7_200_000, 0)).toBe("in 2 h");
  expect(ago(83 * 60_000 + 20_000, 0)).toBe("in 1 h 23 min");
  expect(ago(0, 83 * 60_000)).toBe("1 h ago");
});
it("writes sizes and counts", () => {
  expect(bytes(1_500_000)).toBe("1.5 MB");
  expect([plural(1, "case"), plural(2000, "case")]).toEqual(["1 case", "2,000 cases"]);
});
