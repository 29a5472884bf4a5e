import { expect, it } from "vitest";
import { laterRun } from "@/api/queries";

it.each([
  ["nothing", {}, undefined],
  ["the newest", { x: ["z", "y"] }, "z"],
  ["the newest that was not cancelled", { x: ["z cancelled", "y"] }, "y"],
  ["what runs a cancelled one again", { x: ["y cancelled"], y: ["z"] }, "z"],
  ["the last of several", { x: ["y"], y: ["z"] }, "z"],
  ["the last that was not cancelled", { x: ["y"], y: ["z cancelled"] }, "y"],
  ["the one that was cancelled, if there is no other", { x: ["y cancelled"], y: ["z cancelled"] }, "y"],
])("in the place of a case stands %s", async (_, runs: Record<string, string[]>, expected) => {
  const view = (named: string) => {
    const [id = "", status = "failed"] = named.split(" ");
    return { id, status: status as "failed" | "cancelled" };
  };
  const found = await laterRun("x", async (ids) => ids.flatMap((id) => runs[id] ?? []).map(view));
  expect(found?.id).toBe(expected);
});
