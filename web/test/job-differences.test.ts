import { expect, it } from "vitest";
import { differingParts, jobDifferences } from "@/pages/case/job-differences";

const side = (more: object) => ({ count: 1, states: { completed: 1 }, run_ms: 0, sample: null, command: "echo a", container: "", image: "", resources: { cpus: 1 }, ...more });

it("says sizes and times with their units, and states in words", () => {
  const left = side({ run_ms: 61_000, resources: { cpus: 1, memory_bytes: 4e9, wall_ms: 600_000 } });
  const right = side({ run_ms: 3_000, states: { completed: 2, failed: 1 }, count: 3, resources: { cpus: 2, memory_bytes: 8e9 } });
  expect(jobDifferences({ name: "align", left, right, differences: ["count", "states", "resources", "run_ms"] })).toEqual([
    { name: "state", left: "completed", right: "2 completed, 1 failed", isCode: false },
    { name: "took", left: "1 min 1 s", right: "3 s", isCode: false },
    { name: "cpus", left: "1", right: "2", isCode: false },
    { name: "memory", left: "4.0 GB", right: "8.0 GB", isCode: false },
    { name: "wall", left: "10 min", right: "not said", isCode: false },
  ]);
});
it("says of what one case has not come to only that", () => {
  const skipped = side({ states: { skipped: 1 }, command: "", resources: {} });
  expect(jobDifferences({ name: "publish", left: skipped, right: side({ run_ms: 9000 }), differences: ["states", "command", "resources", "run_ms"] })).toEqual([{ name: "state", left: "skipped", right: "completed", isCode: false }]);
  expect(jobDifferences({ name: "publish", left: side({}), right: null, differences: ["only-left"] })).toEqual([{ name: "state", left: "completed", right: "not there" }]);
});
it("shows of a command what differs", () => {
  expect(differingParts("bwa mem -t 4 /ref/hg38.fa NA12891.fq > out.sam", "bwa mem -t 4 /ref/hg38.fa NA12892.fq > out.sam")).toEqual(["… 4 /ref/hg38.fa NA12891.fq > out.sam", "… 4 /ref/hg38.fa NA12892.fq > out.sam"]);
  expect(differingParts("set -e; cd /x; sort -k1 in > out; wc out; ls", "set -e; cd /x; sort -k1 -u in > out; wc out; ls")[1]).toBe("… sort -k1 -u in > …");
  expect(differingParts("", "echo a")).toEqual(["", "echo a"]);
});
