// @vitest-environment jsdom
import { cleanup, fireEvent, render } from "@testing-library/react";
import { afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { countEarly, startKeys, useKeys } from "@/app/keys";

function Keys({ run, name = "Test" }: { run: (keys: string) => void; name?: string }) {
  useKeys(name, [
    { keys: "j", does: "next", run: () => run("j") },
    { keys: "g c", does: "cases", run: () => run("g c") },
  ]);
  return <input aria-label={`field of ${name}`} />;
}

const press = (...keys: string[]) => keys.forEach((key) => fireEvent.keyDown(document.body, { key }));

beforeAll(startKeys);
beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  document.body.replaceChildren();
});

it("hears keys and sequences, but not those typed into a field", () => {
  const run = vi.fn();
  const { getByLabelText } = render(<Keys run={run} />);
  press("j", "g", "c", "c");
  fireEvent.keyDown(getByLabelText("field of Test"), { key: "j" });
  expect(run.mock.calls.flat()).toEqual(["j", "g c"]);
});

it("acts once on what was pressed before there were keys", () => {
  const run = vi.fn();
  press("j", "g", "c");
  const { rerender } = render(<Keys run={run} />);
  rerender(<><Keys run={run} /><Keys run={run} name="Other" /></>);
  vi.runAllTimers();
  rerender(<Keys run={run} />);
  vi.runAllTimers();
  expect(run.mock.calls.flat()).toEqual(["j", "g c"]);
});

it("forgets what was pressed long before", () => {
  const run = vi.fn();
  press("j", "j", "j");
  vi.advanceTimersByTime(6000);
  press("x");
  expect(countEarly()).toBe(1);
  render(<Keys run={run} />);
  vi.runAllTimers();
  expect(run).not.toHaveBeenCalled();
});

it("leaves early keys to a field or a dialog that has opened since", () => {
  const run = vi.fn();
  press("j");
  const { getByLabelText } = render(<Keys run={run} />);
  getByLabelText("field of Test").focus();
  vi.runAllTimers();
  expect(run).not.toHaveBeenCalled();
});

it("leaves the rest of the early keys to the menu that one of them opens", () => {
  const run = vi.fn(() => void document.body.appendChild(document.createElement("div")).setAttribute("role", "menu"));
  press("j", "j");
  render(<Keys run={run} />);
  vi.runAllTimers();
  expect(run).toHaveBeenCalledTimes(1);
});
