// @vitest-environment jsdom
import { cleanup, fireEvent, render, waitFor } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { SourcesInput } from "@/components/recovery/sources-input";

vi.mock("@/components/value-field", () => ({ storeFile: async (file: File) => ({ $file: `digest of ${file.name}`, bytes: file.size, name: file.name }) }));
afterEach(cleanup);

const IDS = { id: "sources", "aria-describedby": undefined, "aria-invalid": undefined };

it("takes a file from here, or from where the server finds one, for an input by its path", async () => {
  const onChange = vi.fn();
  const { getByLabelText } = render(<SourcesInput ids={IDS} value={{}} onChange={onChange} />);
  fireEvent.change(getByLabelText("Input 1"), { target: { value: "raw.csv" } });
  fireEvent.change(getByLabelText("File for input 1"), { target: { value: "/data/fixed.csv" } });
  expect(onChange).toHaveBeenLastCalledWith({ "raw.csv": "/data/fixed.csv" });
  fireEvent.change(getByLabelText("Choose a file for input 1"), { target: { files: [new File(["1"], "fixed.csv")] } });
  await waitFor(() => expect(onChange).toHaveBeenLastCalledWith({ "raw.csv": { $file: "digest of fixed.csv", bytes: 1, name: "fixed.csv" } }));
});
