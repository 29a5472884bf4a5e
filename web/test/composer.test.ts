import { expect, it } from "vitest";
import { WORDS } from "@/components/recovery/composer";

it("a job is run again with other settings, of which its command is none", () => {
  expect(WORDS["re-submit"]).toContain("another pilot");
  expect(WORDS["re-submit"]).not.toContain("command");
});
