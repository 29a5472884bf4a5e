// @vitest-environment jsdom
import { cleanup, fireEvent, render, waitFor } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { TableFiles } from "@/components/table-files";

afterEach(cleanup);

const COLUMNS = { data: "file", height: "number" };
const store = async (file: File) => ({ $file: `digest of ${file.name}`, bytes: file.size, name: file.name });

it("says which files a table names, and takes them by their names", async () => {
  const onChange = vi.fn();
  const text = "station,data,height\nALM,raw/ALM.csv,200\nBRG,raw/BRG.csv,270\nCHX,lfn:/store/CHX.csv,340\n";
  const { getByRole, getByLabelText, findByRole } = render(<TableFiles name="stations" text={text} columns={COLUMNS} store={store} onChange={onChange} />);
  expect(getByRole("status").textContent).toBe("2 files named: raw/ALM.csv, raw/BRG.csv. Choose them, unless the server can read them there.");
  const chosen = ["ALM.csv", "BRG.csv", "other.csv"].map((name) => new File(["1"], name));
  fireEvent.change(getByLabelText("stations: files that the table names, from here"), { target: { files: chosen } });
  await waitFor(() => expect(onChange).toHaveBeenCalled());
  const rows = JSON.parse(onChange.mock.calls[0]?.[0] as string) as Record<string, unknown>[];
  expect(rows.map((row) => row["data"])).toEqual([{ $file: "digest of ALM.csv", bytes: 1, name: "ALM.csv" }, { $file: "digest of BRG.csv", bytes: 1, name: "BRG.csv" }, "lfn:/store/CHX.csv"]);
  expect((await findByRole("alert")).textContent).toBe("The table names no file other.csv: it was not added.");
});
