// @vitest-environment jsdom
import { cleanup, fireEvent, render } from "@testing-library/react";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { afterEach, expect, it, vi } from "vitest";
import { takeChosen } from "@/components/chosen-files";
import { ValueField } from "@/components/value-field";
import { FilesBeside } from "@/pages/flow/files-beside";
import { FlowEditor } from "@/pages/flow/flow-editor";

vi.mock("@/components/code-view", () => ({ CodeView: () => null }));
vi.mock("@/pages/flow/flow-drawing", () => ({ Picture: () => null }));
globalThis.fetch = vi.fn(() => new Promise<Response>(() => undefined));
Blob.prototype.text ??= async () => "";
afterEach(cleanup);

it("takes the files out of the field, as a browser does not tell of those that are in it", () => {
  const inField = [new File(["1"], "a"), new File(["2"], "b")];
  const field = { get files() { return inField; }, set value(value: string) { if (value === "") inField.length = 0; } };
  expect(takeChosen(field as never).map((file) => file.name)).toEqual(["a", "b"]);
  expect(takeChosen(field as never)).toEqual([]);
});

const FIELDS: [string, ReactElement][] = [
  ["Open a flow file", <FlowEditor name="" onDeployed={() => undefined} />],
  ["Add files beside the flow file", <FilesBeside beside={[]} added={{}} before="" onAdd={() => undefined} />],
  ["Add sim.py", <FilesBeside beside={[{ path: "sim.py", file: null }]} added={{}} before="" onAdd={() => undefined} />],
  ["x: a file from here", <ValueField name="x" wanted={{ type: "file" } as never} draft="" onChange={() => undefined} />],
  ["x: a table from here (.csv or .tsv)", <ValueField name="x" wanted={{ type: "table" } as never} draft="" onChange={() => undefined} />],
];

it.each(FIELDS)("hears of the same file again: %s", (label, element) => {
  const { getByLabelText } = render(<QueryClientProvider client={new QueryClient()}>{element}</QueryClientProvider>);
  const field = getByLabelText(label);
  const set = vi.fn();
  Object.defineProperty(field, "value", { set, get: () => "" });
  fireEvent.change(field, { target: { files: [new File(["1"], "sim.py")] } });
  expect(set).toHaveBeenCalledWith("");
});
