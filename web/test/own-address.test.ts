import { expect, test } from "vitest";
import { ownAddress } from "@/pages/sign-in/page";

test.each(["/", "/cases?where=flow%20%3D%3D%20'a'", "/cases/a-1?view=items#x", "/cases/a b"])("%j is an address of this app", (next) => {
  expect(ownAddress(next)).toBe(next);
});

// What a browser makes of the last four is another server: it leaves out tabs and line ends.
test.each([undefined, "", "cases", "https://other.example", "//other.example", "/\\other.example", "/\t/other.example", "/\n/other.example", "/\r\\other.example", "\t//other.example"])("%j leads to the first page", (next) => {
  expect(ownAddress(next)).toBe("/");
});
