import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { likeEntries } from "@/components/entries-table";
import { JsonTree } from "@/components/json-tree";
import { ValueField } from "@/components/value-field";

const SAMPLES = [{ sample: "PT-1", reads: 41 }, { sample: "PT-2", reads: 39, note: "again" }];

describe("a list of like objects", () => {
  it("is known by its keys", () => {
    expect(likeEntries(SAMPLES)).toBe(SAMPLES);
    expect(likeEntries([{ a: 1, b: 2 }, { c: 3, d: 4 }])).toBeNull();
    expect(likeEntries([{ $file: "0".repeat(64), bytes: 1, name: "a" }])).toBeNull();
    for (const other of [[], ["PT-1"], [[1]], { 0: { a: 1 } }, [{ a: 1 }, null]]) expect(likeEntries(other)).toBeNull();
  });

  it("is a table among values, open where it is small", () => {
    const shown = renderToStaticMarkup(<JsonTree value={{ samples: SAMPLES }} open={1} />);
    expect(shown).toContain("2 rows");
    expect(shown.match(/scope="col"[^<]*</g)).toHaveLength(3);
    for (const text of ["reads", "PT-2", "39", "again"]) expect(shown).toContain(`>${text}<`);
    const large = { samples: Array.from({ length: 11 }, () => SAMPLES[0]) };
    expect(renderToStaticMarkup(<JsonTree value={large} open={1} />)).not.toContain("PT-1");
  });

  it("is told value by value where somebody points at values", () => {
    const shown = renderToStaticMarkup(<JsonTree value={{ samples: SAMPLES }} open={9} onPick={() => undefined} />);
    expect(shown).toContain("samples[1].reads");
    expect(shown).not.toContain("<table");
  });

  it("tells files in it by their names and sizes, in a form as elsewhere", () => {
    const file = { $file: "4e26".padEnd(64, "0"), bytes: 8644, name: "ALM.csv" };
    const draft = JSON.stringify([{ station: "ALM", readings: file, more: [file, { ...file, name: "ALM-2.csv" }] }]);
    const changed: string[] = [];
    const shown = renderToStaticMarkup(<ValueField name="stations" wanted={{ type: "table" } as never} draft={draft} onChange={(text) => changed.push(String(text))} />);
    for (const text of [">ALM.csv<", "8.6 kB", ">ALM-2.csv<"]) expect(shown).toContain(text);
    expect(shown).not.toContain("$file");
    expect(changed).toEqual([]);
  });

  it("is shown as a table by a form, and anything else as text", () => {
    const field = (draft: string) => renderToStaticMarkup(<ValueField name="samples" wanted={{ type: "list" } as never} draft={draft} onChange={() => undefined} />);
    expect(field(JSON.stringify(SAMPLES, null, 2))).not.toContain("<textarea");
    expect(field(JSON.stringify(SAMPLES, null, 2))).toContain(">PT-2</button></td>");
    expect(field("PT-1\nPT-2")).toContain("<textarea");
    expect(field("")).toContain("<textarea");
  });
});
