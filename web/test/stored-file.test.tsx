import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { JsonTree } from "@/components/json-tree";

const SUMMARY = { $file: "9c2e".padEnd(64, "0"), bytes: 66, name: "summary.txt" };

describe("a stored file among values", () => {
  it("is its name and size, and leads to the file", () => {
    const shown = renderToStaticMarkup(<JsonTree value={{ summary: SUMMARY }} of="stations-1" />);
    expect(shown).toContain(`href="/api/v1/files/${SUMMARY.$file}?of=stations-1"`);
    expect(shown).toMatch(/>summary\.txt<.*66 B/);
    expect(shown).not.toContain("$file");
  });
  it("is told by its name in a list too", () => {
    const shown = renderToStaticMarkup(<JsonTree value={{ readings: [SUMMARY] }} open={3} />);
    expect(shown).toContain("summary.txt");
    expect(shown).not.toContain("$file, bytes");
  });
  it("has parts where somebody points at values", () => {
    expect(renderToStaticMarkup(<JsonTree value={{ summary: SUMMARY }} onPick={() => undefined} />)).toContain("$file");
  });
});
