// @vitest-environment jsdom
import { cleanup, fireEvent, render, waitFor } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { filesToSend, keptFiles, placed, plainPath, type FileRef } from "@/components/beside-paths";
import { FilesBeside } from "@/pages/flow/files-beside";

vi.mock("@/components/value-field", () => ({ storeFile: async (file: File) => ({ $file: `digest of ${file.name}`, bytes: file.size, name: file.name }) }));

Blob.prototype.text ??= async () => "";
afterEach(cleanup);

const file = (sha256: string, name = "x.txt"): FileRef => ({ sha256, bytes: 1, name });
const ASKED = ["a/x.txt", "./b/x.txt", "sim.py"];

it("keeps files of one name apart by their paths", () => {
  const kept = keptFiles([{ path: "a/x.txt", file: file("1") }, { path: "b/x.txt", file: file("2") }, { path: "c.txt", file: null }]);
  expect(kept).toEqual({ "a/x.txt": file("1"), "b/x.txt": file("2") });
  expect(keptFiles([{ path: "x.txt", file: file("1") }, { path: "./x.txt", file: file("2") }, { path: "x.txt", file: file("3") }])).toEqual({});
  expect(filesToSend(ASKED, {}, { "b/x.txt": file("2") })).toEqual({ "./b/x.txt": file("2") });
  expect(filesToSend(ASKED, kept, { "a/x.txt": file("3") })).toEqual({ "a/x.txt": file("3"), "b/x.txt": file("2"), "./b/x.txt": file("2") });
});

it("does not send a file for a path that may be of another", () => {
  expect(filesToSend(ASKED, { "x.txt": file("1"), "sim.py": file("2", "sim.py") }, {})).toEqual({ "sim.py": file("2", "sim.py") });
  expect(filesToSend(["a/x.txt"], { "x.txt": file("1") }, {})).toEqual({ "x.txt": file("1") });
});

it("takes chosen files by their names, and says which go nowhere", () => {
  const chosen = ["sim.py", "x.txt", "other.txt"].map((name) => ({ name }));
  const { found, told } = placed([...ASKED, "./sim.py"], chosen);
  expect(found).toEqual([["sim.py", { name: "sim.py" }]]);
  expect(told).toEqual(["x.txt may be a/x.txt or b/x.txt: add it beside its path.", "The flow file names no file other.txt: it was not added."]);
  expect(plainPath("./a//./x.txt")).toBe("a/x.txt");
});

it("adds a file for one path, whatever it is called where it lies", async () => {
  const onAdd = vi.fn();
  const { getByLabelText, findByRole } = render(<FilesBeside beside={ASKED.map((path) => ({ path, file: null }))} added={{}} before="version 1" onAdd={onAdd} />);
  fireEvent.change(getByLabelText("Add ./b/x.txt"), { target: { files: [new File(["1"], "y.txt")] } });
  await waitFor(() => expect(onAdd).toHaveBeenCalledWith({ "b/x.txt": { sha256: "digest of y.txt", bytes: 1, name: "x.txt" } }));
  fireEvent.change(getByLabelText("Add files beside the flow file"), { target: { files: [new File(["1"], "x.txt")] } });
  expect((await findByRole("alert")).textContent).toMatch(/add it beside its path/);
  expect(onAdd).toHaveBeenCalledTimes(1);
});
