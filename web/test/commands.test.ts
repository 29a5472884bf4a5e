import { describe, expect, it } from "vitest";
import { actionsOf, type Alert } from "@/components/alert-actions";
import { caseOf, actionFor, withoutCommands } from "@/components/commands";
import type { Action } from "@/components/actions";
import { glossed } from "@/components/explained-words";

function where(action: Action | null): unknown {
  return action?.kind === "link" ? [action.link.to, action.link.params, action.link.search] : action && [action.needs, action.title];
}

describe("commands in the server's sentences", () => {
  it("become acts on what they name", () => {
    const about = { subject: "night-7f3k" };
    expect(where(actionFor("mendflow resume night-7f3k", about))).toEqual(["resume", "Resume: night-7f3k"]);
    expect(where(actionFor("mendflow resume night-7f3k align[3]", about))).toEqual(["resume", "Resume align[3]"]);
    expect(where(actionFor("mendflow resume", { subject: "night-7f3k:align" }))).toEqual(["resume", "Resume align"]);
    expect(where(actionFor("mendflow cancel night-7f3k.2", about))).toEqual(["cancel", "Cancel: night-7f3k.2"]);
    expect(where(actionFor("mendflow rerun night-7f3k --from-failed", about))).toEqual(["rerun", "Run again from what failed: night-7f3k"]);
    expect(where(actionFor("mendflow rules levels drain 2"))).toEqual(["drain", "Try now"]);
  });
  it("have the name of the act that the page has for a case that is held", () => {
    const about = { subject: "night-7f3k", held: true };
    const action = actionFor("mendflow resume night-7f3k", about);
    expect(where(action)).toEqual(["resume", "Try again: night-7f3k"]);
    expect(action?.kind === "request" && action.will).toContain("is tried again as it is");
    expect(where(actionFor("mendflow resume night-7f3k align[3]", about))).toEqual(["resume", "Resume align[3]"]);
  });
  it("that a job has printed are no acts on other cases", () => {
    expect(actionFor("mendflow cancel other-1a2b", { subject: "night-7f3k" })).toBeNull();
    expect(actionFor("mendflow resume other-1a2b")).toBeNull();
    expect(actionFor("mendflow cancel talks-soap.2", { subject: "talks-soap.1" })).toBeNull();
    expect(where(actionFor("mendflow cancel talks-soap.1.3", { subject: "talks-soap.1" }))).toEqual(["cancel", "Cancel: talks-soap.1.3"]);
  });
  it("become links to where the same is done", () => {
    expect(where(actionFor("mendflow failures show 1a2b3c"))).toEqual(["/failures/$group", { group: "1a2b3c" }, undefined]);
    expect(where(actionFor("mendflow failures show 1a2b3c", { group: "1a2b3c", decision: "d-1" }))).toEqual(["/failures/$group", { group: "1a2b3c" }, { decision: "d-1" }]);
    expect(where(actionFor("mendflow failures show other", { group: "1a2b3c", decision: "d-1" }))).toEqual(["/failures/$group", { group: "other" }, undefined]);
    expect(where(actionFor("mendflow mend night-7f3k --exlet EXLET", { group: "1a2b3c", decision: "d-1" }))).toEqual(["/failures/$group", { group: "1a2b3c" }, { act: "mend", decision: "d-1" }]);
    expect(where(actionFor("mendflow why night-7f3k:align[3]"))).toEqual(["/cases/$case", { case: "night-7f3k" }, { view: "items", item: "align[3]" }]);
    expect(where(actionFor("mendflow worklist claim night-7f3k/4"))).toEqual(["/worklist/$case/$serial", { case: "night-7f3k", serial: "4" }, undefined]);
    expect(where(actionFor("mendflow rules show '*'"))).toEqual(["/rules/$name", { name: "*" }, undefined]);
  });
  it("stay commands where only a terminal has them", () => {
    expect(actionFor("mendflow pilot --server URL")).toBeNull();
    expect(actionFor("mendflow shell night-7f3k/4")).toBeNull();
    expect(actionFor("mendflow mend night-7f3k --exlet EXLET")).toBeNull();
    expect(actionFor("mendflow mend night-7f3k --exlet EXLET", { group: "1a2b3c" })).toBeNull();
  });
  it("are left out with what speaks of them", () => {
    expect(withoutCommands("job a/1 has run for 2 h, and it still runs. See what it says with `mendflow logs a/1`; if it hangs")).toBe("job a/1 has run for 2 h, and it still runs.");
    expect(withoutCommands("a disk is full")).toBe("a disk is full");
  });
  it("tell the case of a job and of an item", () => {
    expect(["a-1", "a-1:x[2]", "a-1/7"].map(caseOf)).toEqual(["a-1", "a-1", "a-1"]);
  });
});

describe("alerts", () => {
  const alert = { id: "x/y/z", subject: "y", case: "night-7f3k", item: "align", group: "1a2b3c", sentence: "", closed_at: 0 } as unknown as Alert;
  it.each(["orphan", "long-job", "pilot-gone", "server-gone", "queue-grows", "level-fills", "limit-unset", "case-held", "disk-full", "not-delivered", "site-paused", "site-away", "failure", "rule-errs", "not-started", "message"] as const)("of the kind %s say what can be done", (kind) => {
    expect(actionsOf({ ...alert, kind })).not.toHaveLength(0);
  });
  it("that are over only lead somewhere", () => {
    expect(actionsOf({ ...alert, kind: "case-held", closed_at: 1 }).every((each) => each.kind === "link")).toBe(true);
  });
  it("name the level and the rule that they are about", () => {
    expect(actionsOf({ ...alert, kind: "level-fills", subject: "level 2 at north" }).map((each) => each.label)).toContain("Try now");
    expect(where(actionsOf({ ...alert, kind: "rule-errs", subject: "night/abort/align/7" })[0] ?? null)).toEqual(["/rules/$name", { name: "night" }, { tree: "abort/align", rule: 7 }]);
  });
});

it("words of the glossary are marked once each, and only those that are meant", () => {
  expect(glossed("an exlet, and another exlet, without handlers")).toEqual(["an ", { word: "exlet" }, ", and another ", "exlet", ", ", { word: "without handlers" }]);
  expect(glossed("Key error in level 2", ["level"])).toEqual(["", "Key", " error in ", { word: "level" }, " 2"].filter(Boolean));
});
