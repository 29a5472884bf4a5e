import { expect, test } from "vitest";
import { withWholeTimes } from "@/components/copied-times";

test("what is copied has whole times, each its own", () => {
  const times = [{ shown: "5 min ago", whole: "2026-11-19T10:00:00.000Z" }, { shown: "5 min ago", whole: "2026-11-19T10:00:30.000Z" }];
  expect(withWholeTimes("night-1\t5 min ago\nnight-2\t5 min ago\n", times)).toBe("night-1\t2026-11-19T10:00:00.000Z\nnight-2\t2026-11-19T10:00:30.000Z\n");
  expect(withWholeTimes("a part: min ago", times)).toBe("a part: min ago");
});
