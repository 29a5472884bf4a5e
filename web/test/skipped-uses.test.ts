import { expect, it } from "vitest";
import { skips, usesOf } from "@/pages/failure/skipped-uses";

const job = (name: string, more: object) => ({ kind: "job", name, ...more });
const FLOW = {
  body: {
    kind: "foreach",
    name: "station",
    collect: "${{ jobs.stats.files.stats }}",
    body: {
      kind: "sequence",
      name: "steps",
      body: [
        job("decode", {}),
        job("stats", { inputs: { "clean.csv": "${{ jobs.decode.files.clean }}" }, env: { ROWS: "${{ jobs.decode.outputs.rows }}" } }),
        job("plot", { inputs: { "x.csv": "${{ jobs['decode'].files['clean.csv'] }}" } }),
        job("other", { command: "${{ jobs.decoded.files.x }}" }),
      ],
    },
  },
};

it("finds the steps that take files or outputs of one that is skipped", () => {
  expect(usesOf(FLOW, "decode")).toEqual([
    { by: "stats", what: ["files.clean", "outputs.rows"] },
    { by: "plot", what: ["files.clean.csv"] },
  ]);
  expect(usesOf(FLOW, "stats")).toEqual([{ by: "station", what: ["files.stats"] }]);
  expect(usesOf(FLOW, "plot")).toEqual([]);
  expect(usesOf(undefined, "plot")).toEqual([]);
});

it("knows a repair that skips", () => {
  expect(skips({ body: { kind: "mend", do: "force-complete" } } as never)).toBe(true);
  expect(skips({ body: { kind: "mend", do: "re-submit" } } as never)).toBe(false);
});
