import { expect, it } from "vitest";
import { PRIMITIVE_WORDS } from "@/components/recovery/primitive-words";

it("a job is run again with other settings, of which its command is none", () => {
  expect(PRIMITIVE_WORDS["re-submit"]).toContain("another pilot");
  expect(PRIMITIVE_WORDS["re-submit"]).not.toContain("command");
});
