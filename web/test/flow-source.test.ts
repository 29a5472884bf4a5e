import { expect, it } from "vitest";
import { caseFlowFileQuery } from "@/api/queries";
import { FLOW_TEXT_MAX, sourceOf } from "@/pages/flow/flow-source";

it("leaves the text of a file out that a server would refuse, and says why", () => {
  const long = "#".repeat(FLOW_TEXT_MAX);
  expect(sourceOf("qc.yaml", long)).toEqual({ file: "qc.yaml", text: long });
  const left = { file: "qc.yaml", left_out: "the file is longer than 1,048,576 characters, and not kept" };
  expect(sourceOf("qc.yaml", `${long}#`)).toEqual(left);
  expect(sourceOf("qc.yaml", `${long}${long}#`)).toEqual(left);
});

it("counts characters as a server does", () => {
  const emojis = "\u{1F9EC}".repeat(FLOW_TEXT_MAX);
  expect(sourceOf("qc.yaml", emojis).text).toBe(emojis);
  expect(sourceOf("qc.yaml", `${emojis}#`).text).toBeUndefined();
});

it("reads the file of a case again, which somebody may have replaced", () => {
  expect(caseFlowFileQuery("qc-1").staleTime).toBeUndefined();
});

it("names a file by a plain name, which a server takes", () => {
  expect(sourceOf("nights/qc [2].yaml", "jobs: {}").file).toBe("qc [2].yaml");
  expect(sourceOf("../../qc\n\u00a0\\2.yaml", "jobs: {}").file).toBe("qc___2.yaml");
  for (const odd of ["", "..", "a/", " "]) expect(sourceOf(odd, "jobs: {}").file).toBe("flow.yaml");
});
