import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { explained, EXPLAINED_WORDS } from "@/components/explained-words";
import { searchHelpWords } from "@/pages/help/help-word-search";
import { HELP_WORDS } from "@/pages/help/help-words";

const plain = (text: string) => text.replace(/\[([^\]]+)\]\([^)]*\)/g, "$1").replaceAll("**", "").trim();

it("says of each word what the glossary of the documentation says", () => {
  const rows = readFileSync(new URL("../../docs/reference/glossary.md", import.meta.url), "utf8").split("\n");
  const glossary = new Map(rows.flatMap((row) => (row.startsWith("| **") ? [row.split(" | ")] : [])).map((cells) => [plain((cells[0] ?? "").slice(2)), [plain(cells[1] ?? ""), plain((cells[2] ?? "").replace(/\|\s*$/, ""))]]));
  for (const { word, means, elsewhere } of HELP_WORDS) expect([word, ...(glossary.get(word) ?? [])]).toEqual([word, means, elsewhere]);
});

it("finds a word by its name, by what it means, and by the words of other systems", () => {
  expect(searchHelpWords("")).toBe(HELP_WORDS);
  expect(searchHelpWords(" Exlet ")[0]?.word).toBe("exlet");
  expect(searchHelpWords("workflow execution").map((each) => each.word)).toContain("case");
  expect(searchHelpWords("nothing of the kind")).toEqual([]);
});

it("explains a word as it is explained where it stands", () => {
  const both = HELP_WORDS.filter(({ word }) => Object.hasOwn(EXPLAINED_WORDS, word));
  expect(both.length).toBeGreaterThan(10);
  for (const { word, means } of both) expect(means).toBe(EXPLAINED_WORDS[word as keyof typeof EXPLAINED_WORDS]);
  expect(explained("slots")).toEqual({ word: "slot", sentence: "A place for one running job in a pilot." });
});
