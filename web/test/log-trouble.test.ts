import { expect, it } from "vitest";
import { tellsTrouble } from "@/components/log-trouble";

it.each(["Error: no such file", "job failed", "E: Failed", "Traceback (most recent call last):", "bash: bwa: command not found", "exit: 3 errors", "Killed", "FATAL no memory", "java.lang.Exception: it is over", "cp: cannot stat 'x'", "error=28", "failed: 3", "No space left on device"])("%s tells of trouble", (line) => {
  expect(tellsTrouble(line)).toBe(true);
});
it.each(["1500 + 0 in total (QC-passed reads + QC-failed reads)", "12 passed, 0 failed", "failed=0", "errors: 0", "no error", "finished without errors", "found no fatal errors", "error_rate 0.01", "unfailed", "--error-profile illumina", "error: none"])("%s tells of none", (line) => {
  expect(tellsTrouble(line)).toBe(false);
});
