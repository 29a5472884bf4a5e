import { expect, test } from "vitest";
import { navigationFor } from "@/app/navigation";

const names = (me: Parameters<typeof navigationFor>[0]) => navigationFor(me).flat().map((entry) => entry.name);

test("the menu of whoever only has tasks to do is short", () => {
  expect(names({ may: ["cases", "complete"], roles: ["investigator"] })).toEqual(["Home", "Cases", "Worklist", "Help"]);
});

test("everybody else finds all pages, and so does whoever is not known yet", () => {
  for (const me of [null, undefined, { may: ["start"], roles: ["investigator"] }, { may: ["cases"], roles: ["reader", "investigator"] }, { may: ["cases"], roles: ["reader"] }]) expect(names(me)).toHaveLength(16);
});
