import { describe, expect, it } from "vitest";
import { readSize, writeSize } from "@/components/quantities";

describe("sizes that are written and read again", () => {
  it.each([0, 1, 999, 1000, 1024, 1_500_000_000, 8 * 2 ** 30, 1_234_567, 1e12, 2 ** 40, 1.5e13])("%d bytes stay the same", (bytes) => {
    expect(readSize(writeSize(bytes))).toBe(bytes);
  });

  it("are as short as can be", () => {
    expect([1.5e9, 8 * 2 ** 30, 1_234_567].map(writeSize)).toEqual(["1500 MB", "8 GiB", "1234567 B"]);
  });
});
