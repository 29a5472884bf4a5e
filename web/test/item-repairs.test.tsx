// @vitest-environment jsdom
import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { RepairTime } from "@/pages/case/item-repairs";

afterEach(cleanup);

it("a repair has the time of its end, and not that of the failure", () => {
  const now = Date.now();
  const shown = (ended: number) => render(<RepairTime decision={{ at: now - 540_000, ended_at: ended }} />).container.textContent;
  expect(shown(now - 20_000)).toMatch(/^2\d s ago$/);
  expect(shown(0)).toBe("for what failed 9 min ago");
});
