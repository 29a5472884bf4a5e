// @vitest-environment jsdom
import { fireEvent, render } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { startKeys, useKeys } from "@/app/keys";

function Keys({ run }: { run: (keys: string) => void }) {
  useKeys("Test", [
    { keys: "j", does: "next", run: () => run("j") },
    { keys: "g c", does: "cases", run: () => run("g c") },
  ]);
  return <input aria-label="field" />;
}

it("hears keys and sequences, but not those typed into a field", () => {
  startKeys();
  const run = vi.fn();
  const { getByLabelText } = render(<Keys run={run} />);
  for (const key of ["j", "g", "c", "c"]) fireEvent.keyDown(document.body, { key });
  fireEvent.keyDown(getByLabelText("field"), { key: "j" });
  expect(run.mock.calls.flat()).toEqual(["j", "g c"]);
});
