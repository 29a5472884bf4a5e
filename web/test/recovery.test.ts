import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { failingLine, readTerms, splitTerms, steadyPart, withTerm, writeTerm } from "@/components/recovery/conditions";
import { changes } from "@/components/recovery/decision-words";
import { settingsText } from "@/components/recovery/exlet-steps";
import { readQuantity } from "@/components/recovery/step-form";
import { exletText } from "@/components/recovery/exlet-text";
import { caseValuesOf, copyOf, flowOf, isWhole, nameFor, newStep, rootsRead, stepsOf, variablesOf, withSteps } from "@/components/recovery/exlets";
import { appliedWords, countsOfApply, leftWords, type RuleTree } from "@/components/recovery/queries";
import { walkTree } from "@/components/recovery/rule-walk";
import { distinguishing, howOften, isShownFirst, lookedForFirst, parted, sortedByWeight, splitByKind, valueKindOf } from "@/components/recovery/distinguishing-values";
import { differing } from "@/components/recovery/values";
import { exletOfNode } from "@/pages/case/queries";

describe("conditions", () => {
  it("are split where no bracket and no text is open", () => {
    expect(splitTerms('a == 1 && b.contains("x && y") && (c || d)')).toEqual(["a == 1", 'b.contains("x && y")', "(c || d)"]);
    expect(splitTerms("a || b && c")).toEqual(["a || b && c"]);
  });
  it("are read as parts and written again", () => {
    const condition = 'fault.exit_code >= 7 && job.log_tail.contains("no \\"token\\"") && has(case.data.x) && item.name in ["a", "b"]';
    const terms = readTerms(condition);
    expect(terms.map((each) => each.operator)).toEqual([">=", "contains", "is there", "in"]);
    expect(terms.map((each) => writeTerm(each.path ?? "", each.operator ?? "==", each.literal ?? ""))).toEqual(terms.map((each) => each.text));
  });
  it("do not get the same part twice", () => {
    expect(withTerm("a == 1", "a == 1")).toBe("a == 1");
    expect(withTerm("", "a == 1")).toBe("a == 1");
    expect(withTerm("(a && b) || c", "d <= 3")).toBe("((a && b) || c) && d <= 3");
    expect(withTerm("a ? b : c", "d <= 3")).toBe("(a ? b : c) && d <= 3");
    expect(withTerm('(a || b) && c.contains("||")', "d <= 3")).toBe('(a || b) && c.contains("||") && d <= 3');
  });
  it("find the failing line, and what other cases have of it", () => {
    expect(failingLine("one\nERROR reset by a-17\nlater", "ERROR reset by a-17 (exit code 7)")).toBe(1);
    expect(failingLine("one\nlater\n", "it ended with exit code 7")).toBe(1);
    expect(failingLine("one\nlater\n", "it ended with exit code 7", { orLast: false })).toBe(-1);
    expect(steadyPart("ERROR connection reset by archive-17")).toBe("ERROR connection reset by");
  });
});

it("the walk of a tree tells how often each rule held", () => {
  const rules = { "1": { id: 1, condition: "a", on_true: 2, on_false: 3 }, "2": { id: 2, condition: "b" }, "3": { id: 3, condition: "c" } };
  const decided: Record<number, number> = { 1: 4, 2: 3, 3: 5 };
  const walked = walkTree({ root: 1, rules } as unknown as RuleTree, (rule) => decided[rule] ?? 0);
  expect(walked.map((each) => [each.rule.id, each.depth, each.asked, each.held])).toEqual([[1, 0, 12, 7], [2, 1, 7, 3], [3, 0, 5, 5]]);
});

it("an exlet that is composed is read again as its steps, with the roots that it reads as variables", () => {
  const steps = [newStep("wait", { duration: 1000 }), newStep("re-submit", { resources: { memory_bytes: "${{ job.memory_bytes * 2 }}" } })];
  const flow = flowOf({ name: "more", description: "", steps });
  expect(rootsRead(steps)).toEqual(["job"]);
  expect(stepsOf(flow)?.map((each) => [each.do, each.settings])).toEqual(steps.map((each) => [each.do, each.settings]));
});

describe("the name of an exlet", () => {
  const longer = [newStep("re-submit", { resources: { wall_ms: "${{ job.wall_ms * 2 }}" } })];
  const scratch = [newStep("re-submit", { env: { SCRATCH: "/b" }, wait_ms: 1000 })];
  const copy = copyOf("more-time", flowOf({ name: "more-time", description: "More time", steps: longer }), ["more-time", "more-time-2"]);
  it("says what its steps do", () => {
    expect(nameFor([newStep("wait", { duration: 1 }), ...scratch])).toBe("wait-then-re-submit-with-SCRATCH");
    expect(withSteps({ name: "re-submit", description: "", steps: [newStep("re-submit")] }, scratch).name).toBe("re-submit-with-SCRATCH");
  });
  it("names a command by its program", () => {
    expect(nameFor([newStep("run", { command: "# make it\nTMP=/b /bin/mkdir -p indexes" }), newStep("re-submit")])).toBe("mkdir-then-re-submit");
    expect(nameFor([newStep("run", { command: "" })])).toBe("run");
  });
  it("is that of a copy, with what it is said to do, only while it does what was copied", () => {
    if (!copy) throw new Error("it cannot be copied");
    expect([copy.name, copy.description]).toEqual(["more-time-3", "More time"]);
    const fourTimes = withSteps(copy, [{ ...longer[0], settings: { resources: { wall_ms: 4 } } } as (typeof longer)[0] & object]);
    expect(fourTimes.name).toBe("more-time-3");
    const emptied = withSteps(fourTimes, []);
    expect([emptied.name, withSteps(emptied, scratch).name, withSteps(copy, scratch).description]).toEqual(["", "re-submit-with-SCRATCH", ""]);
  });
  it("is kept if somebody has given it", () => {
    expect(withSteps({ ...(copy as NonNullable<typeof copy>), name: "other-scratch" }, scratch).name).toBe("other-scratch");
  });
});

it("what a step sets is told by its names and values", () => {
  expect(settingsText({ env: { SCRATCH: "/scratch/b" }, wait_ms: 1000 })).toBe("env.SCRATCH = /scratch/b, wait = 1 s");
});

it("the variables of a job are those of its context that are plain values", () => {
  expect(variablesOf({ item: { data: { SCRATCH: "/scratch/a", threads: 4, "no-name": "x", table: { a: 1 } } } })).toEqual({ SCRATCH: "/scratch/a", threads: "4" });
  expect(variablesOf(undefined)).toEqual({});
});

it("an application of rules is counted in failures, as its button counts them", () => {
  expect(countsOfApply({ taken_up: ["a-1/1:1:1/abort", "a-1/1:2:1/abort", "b-1/1:1:1/abort", "b-1.2/1:1:1/abort", "t-soap.1/1:1:1/abort", "t-soap.2/1:1:1/abort"], left: ["a-1/2:1:1/abort", "d-1/1:1:1/abort"], refused: { "e-1/1:1:1/abort": "it is over" } })).toEqual({ taken: 6, cases: 4, left: 2, refused: 1 });
});

it("failures that stay as they are are counted by the reason", () => {
  expect(leftWords({ why_left: { "a-1/1": "no-rule", "b-1/1": "elsewhere", "c-1/1": "no-rule" } })).toBe("2 taken up by no rule, 1 of a case that another server has");
  expect(leftWords({ why_left: {} })).toBe("");
});

it("failures that stay as they are are told in the words of the command line", () => {
  const reasons = JSON.parse(readFileSync(new URL("../../tests/cli/reasons_left.json", import.meta.url), "utf8")) as Record<string, string>;
  for (const [reason, words] of Object.entries(reasons)) expect(leftWords({ why_left: { "a-1/1": reason as never } })).toBe(`1 ${words}`);
});

it("where nothing was left to apply rules to, that is said instead of zeros", () => {
  const none = { taken_up: [], left: [], refused: {}, why_left: {}, running: false, stopped: false, total: 0 };
  expect(appliedWords(none)).toBe("Done: nothing waits for it any more");
  expect(appliedWords({ ...none, running: true })).toBe("Under way: 0 failures taken up, 0 left as they are");
  expect(appliedWords({ ...none, total: 2, taken_up: ["a-1/1:1:1/abort"], left: ["b-1/1:1:1/abort"], why_left: { "b-1/1:1:1/abort": "no-rule" } })).toBe("Done: 1 failure taken up in 1 case, 1 left as it is (1 taken up by no rule)");
});

it("only what differs is compared", () => {
  expect(differing({ a: 1, b: { c: 2 } }, { a: 1, b: { c: 3 } })).toEqual([{ path: "b.c", left: 2, right: 3 }]);
});

describe("what tells a group apart", () => {
  const count = (here: number, ofHere: number, elsewhere: number, ofElsewhere: number, succeeded = 0, knownSucceeded = 0) => ({ here, of_here: ofHere, elsewhere, of_elsewhere: ofElsewhere, succeeded, known_succeeded: knownSucceeded });
  it("is what these have and others have not", () => {
    expect(valueKindOf("job.host", count(4, 4, 0, 9))).toBe("distinguishing");
    expect(valueKindOf("job.host", count(4, 4, 9, 9))).toBe("same");
    expect(valueKindOf("job.host", count(1, 4, 0, 9))).toBe("varies");
    expect(valueKindOf("job.host", count(1, 1, 0, 9))).toBe("distinguishing");
    expect(valueKindOf("job.peak_bytes", { ...count(1, 1, 0, 9), value: 1234 })).toBe("same");
    expect(valueKindOf("job.ran_ms", { ...count(2, 4, 0, 9), value: 7 })).toBe("varies");
    expect(valueKindOf("job.retries", { ...count(4, 4, 7, 9), value: 0 })).toBe("same");
    expect(valueKindOf("job.host", count(4, 4, 0, 9, 12, 12))).toBe("same");
    expect(valueKindOf("case.data.table", count(4, 4, 0, 0, 0, 12))).toBe("distinguishing");
  });
  it("is what the failure says, as long as nothing else has failed", () => {
    expect([valueKindOf("fault.exit_code", count(4, 4, 0, 0)), valueKindOf("job.host", count(4, 4, 0, 0))]).toEqual(["distinguishing", "same"]);
  });
  it("has counts only where these are not all", () => {
    expect([count(4, 4, 0, 9), count(4, 4, 2, 9), count(3, 4, 0, 9), count(4, 4, 9, 9), count(4, 4, 0, 0), count(3, 4, 0, 0)].map(howOften)).toEqual(["", "2 of 9 other failures", "3 of 4 here", "", "", "3 of 4 here"]);
    expect(howOften(count(4, 4, 2, 9, 1, 6))).toBe("2 of 9 other failures, 1 of 6 jobs that ended well");
  });
  it("begins with what tells most", () => {
    const weights: Record<string, number> = { "case.flow": 0.4, "fault.name": 0, "fault.exit_code": 1 };
    expect(JSON.stringify(sortedByWeight({ case: { flow: "f" }, fault: { name: "exit", exit_code: 7 } }, (path) => weights[path] ?? 0))).toBe('{"fault":{"exit_code":7,"name":"exit"},"case":{"flow":"f"}}');
  });
  it("takes a context apart and keeps its form", () => {
    const parts = splitByKind({ fault: { name: "exit" }, job: { host: "a", cpus: 1 }, hosts: ["a"] }, (path) => (path.startsWith("fault.") ? "distinguishing" : path === "job.cpus" ? "same" : "varies"));
    expect(parts).toEqual({ distinguishing: { fault: { name: "exit" } }, same: { job: { cpus: 1 } }, varies: { job: { host: "a" }, hosts: ["a"] } });
  });
});

it("shows first what people look for, and what can be compared", () => {
  const paths = ["job.owner", "case.data.table", "case.jobs.split.exit_code", "job.log_tail", "fault.exit_code"];
  expect(paths.toSorted((one, other) => lookedForFirst(one) - lookedForFirst(other)).slice(0, 3)).toEqual(["fault.exit_code", "job.log_tail", "case.data.table"]);
  expect(paths.filter((path) => isShownFirst({ path, known_elsewhere: 0, known_succeeded: 0 }))).toEqual(["case.data.table", "job.log_tail", "fault.exit_code"]);
  expect(isShownFirst({ path: "job.host", known_elsewhere: 3, known_succeeded: 0 })).toBe(true);
  expect(isShownFirst({ path: "job.host", known_elsewhere: 0, known_succeeded: 3 })).toBe(true);
});

it("a handful of values comes first, and each says something of its own", () => {
  const value = (path: string, value: string | number, succeeded = 0) => ({ path, value, here: 4, of_here: 4, elsewhere: 0, of_elsewhere: 3, known_elsewhere: 3, succeeded, known_succeeded: 9, conditions: [`${path} == ${value}`] });
  const many = Array.from({ length: 9 }, (_, at) => value(`case.data.n${at}`, at));
  const { first, more } = parted(distinguishing([value("job.owner", "alice", 9), ...many, value("fault.exit_code", 7), value("job.exit_code", 7)]));
  expect(first.map((each) => each.path)).toEqual(["fault.exit_code", "case.data.n0", "case.data.n1", "case.data.n2", "case.data.n3", "case.data.n4"]);
  expect(more.map((each) => each.path)).toEqual(["job.exit_code", "case.data.n5", "case.data.n6", "case.data.n7", "case.data.n8"]);
});

it("a value that is known of nothing else tells nothing apart", () => {
  const count = { here: 5, of_here: 5, elsewhere: 0, of_elsewhere: 9, succeeded: 0, known_succeeded: 0 };
  expect(valueKindOf("case.data.memory", { ...count, value: "300 MB", known_elsewhere: 0 })).toBe("same");
  expect(valueKindOf("case.data.memory", { ...count, value: "300 MB", known_elsewhere: 9 })).toBe("distinguishing");
  expect(valueKindOf("fault.file", { ...count, value: "a.csv", known_elsewhere: 0 })).toBe("distinguishing");
});

it("says what a repair changed of what a job asks for", () => {
  expect(changes({ memory_bytes: 1e9, cpus: 1, wall_ms: 0, avoid_hosts: [] }, { memory_bytes: 2e9, wall_ms: 60_000, avoid_hosts: ["n1"] })).toEqual(["memory 1.0 GB → 2.0 GB", "time not said → 1 min", "not on n1"]);
  expect(changes({ cpus: 1, memory_bytes: 0 }, {})).toEqual([]);
});

it("knows the exlet of a node of the graph, and of a step in it", () => {
  expect(exletOfNode("exlet:huge:nobody-can")).toEqual({ task: "huge", exlet: "nobody-can" });
  expect(exletOfNode("exlet:huge:nobody-can/step-1")).toEqual({ task: "huge", exlet: "nobody-can" });
  expect(exletOfNode("huge")).toBeNull();
  expect(exletOfNode(undefined)).toBeNull();
});

describe("an exlet that runs a command", () => {
  const steps = [newStep("run", { command: "make-calib ${{ quote(case.data.file.stem) }}\n", name: "make-calib" }), newStep("re-submit", { resources: { memory_bytes: "${{ job.memory_bytes * 2 }}" }, wait_ms: 1000 })];
  const flow = flowOf({ name: "calibrate", description: "Make it: then try", steps });
  it("has it as a job, and is read again as its steps", () => {
    expect(rootsRead(steps)).toEqual(["case", "job"]);
    expect(stepsOf(flow)?.map((each) => [each.do, each.settings])).toEqual(steps.map((each) => [each.do, each.settings]));
    expect(nameFor(steps)).toBe("make-calib-then-re-submit-with-memory");
    expect([isWhole(steps), isWhole([newStep("run", { command: " " })])]).toEqual([true, false]);
  });
  it("is shown as the text of its file", () => {
    expect(exletText(flow)).toBe(
      'name: calibrate\ndescription: "Make it: then try"\nsteps:\n  - name: make-calib\n    run: "make-calib ${{ quote(case.data.file.stem) }}\\n"\n  - re-submit:\n    memory: ${{ job.memory_bytes * 2 }}\n    wait: 1000 ms\n',
    );
  });
  it("is shown whole where it is more than a list of steps", () => {
    const job = { kind: "job", name: "step-1", command: "first\nsecond\n", resources: { cpus: 2 }, limits: {}, container: { image: "calib:3" } };
    const branch = { kind: "sequence", name: "step-2", when: { text: "job.level > 1" }, body: [{ kind: "mend", do: "notify", name: "step-2.do", settings: { message: "off" } }] };
    const more = { name: "more", exlet: true, inputs: {}, body: { kind: "sequence", name: "more.steps", body: [job, branch] } } as unknown as typeof flow;
    expect(stepsOf(more)).toBeNull();
    expect(exletText(more)).toBe('name: more\nsteps:\n  - run: |\n      first\n      second\n    cpus: 2\n    container:\n      image: "calib:3"\n  - if: job.level > 1\n    do:\n      - notify: "off"\n');
  });
  it("may be given values of the failed case, each as one word", () => {
    const values = caseValuesOf({ job: { host: "node2", log_tail: "x" }, case: { id: "c-1", data: { file: { stem: "halle" }, "odd name": 1, none: null } } });
    expect(values.map((each) => each.expression)).toEqual(["${{ quote(case.data.file.stem) }}", "${{ quote(job.host) }}", "${{ quote(case.id) }}"]);
  });
});

it("a size or a time of a step is written with its unit, a number alone as bytes or milliseconds", () => {
  expect(["4 GB", "1 GiB", "2000", "", "${{ job.memory_bytes * 2 }}", "much"].map((each) => readQuantity(each, "size"))).toEqual([4e9, 2 ** 30, 2000, undefined, "${{ job.memory_bytes * 2 }}", "much"]);
  expect(["10 min", "1.5 h"].map((each) => readQuantity(each, "time"))).toEqual([600_000, 5_400_000]);
});
