import { expect, it } from "vitest";
import { sizeInputs } from "@/pages/new-run/size-inputs";

it("an input that a job asks for as its memory is a size", () => {
  const job = { kind: "job", command: "echo ${{ inputs.words }}", resources: { cpus: 1, memory_bytes: "${{ inputs.room }}" } };
  const loop = { kind: "for-each", body: { kind: "job", resources: { disk_bytes: "${{ inputs.scratch }}", memory_bytes: "${{ inputs.count * 2 }}" } } };
  const call = { kind: "job", with: { chunk_bytes: "${{ inputs.count }}" }, resources: { cpus: 1 } };
  expect([...sizeInputs({ body: { branches: [job, loop, call] }, inputs: { words: {}, room: {}, scratch: {}, count: {} } })]).toEqual(["room", "scratch"]);
});
