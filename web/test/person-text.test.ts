import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { personText } from "@/components/person-text";

it("tells people by their names, and whoever the server has no name for in words", () => {
  expect(personText("ann")).toBe("ann");
  expect(personText("root")).toBe("root");
  expect(personText("local")).toBe("somebody on the server's machine");
  expect([personText(""), personText(null), personText(undefined)]).toEqual(["", "", ""]);
});

const BARE = /(?:\bby \$?\{|=> |\{|", )(?:\w+\??\.)+(?:by|who|owner|author|[a-z]+ed_by|set_by|made_by)(?:\}| \}|\]| \|\|)/;

it("is how every page names people", () => {
  const folder = new URL("../src/", import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => /^(pages|components)\/.*\.tsx?$/.test(file));
  expect(files.length).toBeGreaterThan(100);
  const bare = files.flatMap((file) => {
    const lines = readFileSync(new URL(file, folder), "utf8").split("\n");
    return lines.filter((line) => BARE.test(line.replace('["Made by", file.made_by]', ""))).map((line) => `${file}: ${line.trim()}`);
  });
  expect(bare).toEqual([]);
});
