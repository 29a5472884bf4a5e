// @vitest-environment jsdom
import { describe, expect, it, vi } from "vitest";

describe("the track of a column", async () => {
  vi.stubGlobal("matchMedia", () => ({ matches: false }));
  const { trackOf } = await import("@/components/data-table");
  const column = { width: "minmax(140px, 1fr)", fits: (row: string) => row };

  it("has room for the longest of its texts, but for very long ones", () => {
    expect(trackOf(column, ["measure[0] field-001", "calibrate"])).toBe("minmax(140px, max(140px, 170px))");
    expect(trackOf(column, ["x".repeat(200)])).toBe("minmax(140px, max(140px, 400px))");
    expect(trackOf(column, [])).toBe("minmax(140px, max(140px, 20px))");
  });

  it("is that of the page where the column fits nothing", () => {
    expect(trackOf({ width: "124px" }, ["completed"])).toBe("124px");
    expect(trackOf({}, ["completed"])).toBe("minmax(80px, 1fr)");
  });
});
