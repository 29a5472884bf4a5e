// @vitest-environment jsdom
import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { likeEntries } from "@/components/entries-table";
import { JsonTree } from "@/components/json-tree";
import * as texts from "@/components/table-texts";
import { ValueField } from "@/components/value-field";

vi.mock("@/components/table-input", () => ({ TableInput: () => null }));
vi.mock("@/components/table-texts", { spy: true });
afterEach(cleanup);

/** Entries that count how often somebody looked at their keys. */
function watched(count: number, of: (at: number) => object): { entries: object[]; looks: () => number } {
  let looks = 0;
  const ownKeys = (entry: object) => ((looks += 1), Reflect.ownKeys(entry));
  return { entries: Array.from({ length: count }, (_, at) => new Proxy(of(at), { ownKeys })), looks: () => looks };
}

it("looks no further at a list than until it is known to be none of like objects", () => {
  const wide = watched(1000, (at) => Object.fromEntries(Array.from({ length: 7 }, (_, key) => [`${at}-${key}`, 1])));
  expect(likeEntries(wide.entries)).toBeNull();
  expect(wide.looks()).toBe(2);
  const alike = watched(1000, (at) => ({ sample: at, [`only ${at}`]: 1 }));
  expect(likeEntries(alike.entries)).toBeNull();
  expect(alike.looks()).toBe(3);
});

it("looks at a list once, however often its page is drawn", () => {
  const { entries, looks } = watched(1000, (at) => ({ sample: at, reads: 1 }));
  const { rerender } = render(<JsonTree value={entries} />);
  const first = looks();
  rerender(<JsonTree value={entries} label="again" />);
  expect(looks()).toBe(first);
});

it("reads the text of a list once, and not with each letter", () => {
  const field = (draft: string) => <ValueField name="samples" wanted={{ type: "list" } as never} draft={draft} onChange={() => undefined} />;
  const { rerender } = render(field("["));
  for (const draft of ["[{", '[{"', '[{"a']) rerender(field(draft));
  expect(texts.entriesIn).toHaveBeenCalledTimes(1);
});
