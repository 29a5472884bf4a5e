// @vitest-environment jsdom
import { act, renderHook } from "@testing-library/react";
import { expect, it } from "vitest";
import type { Schemas } from "@/api/client";
import { ApiError } from "@/api/errors";
import { effectiveInputs } from "@/components/case-inputs";
import { useInputs } from "@/pages/new-run/input-drafts";
import { refusedInputs } from "@/pages/new-run/run-form";

type Inputs = Record<string, Schemas["Input"]>;

const input = (more: Partial<Schemas["Input"]> = {}) => ({ type: "", required: false, default: null, description: "", ...more }) as Schemas["Input"];

it("keeps what was typed with its name when the flow has other inputs meanwhile", () => {
  const { result, rerender } = renderHook(({ inputs }: { inputs: Inputs }) => useInputs(inputs), { initialProps: { inputs: { a: input(), b: input({ default: 1 }) } as Inputs } });
  act(() => result.current.set("a", "mine"));
  rerender({ inputs: { first: input({ default: "new" }), b: input({ default: 2 }), a: input() } });
  expect(result.current.drafts).toEqual({ first: "new", b: "2", a: "mine" });
  expect(result.current.values).toEqual({ a: "mine" });
  rerender({ inputs: { b: input({ default: 2 }) } });
  expect(result.current.values).toEqual({});
});
it("waits for no file of an input that the flow no longer has", () => {
  const { result, rerender } = renderHook(({ inputs }: { inputs: Inputs }) => useInputs(inputs), { initialProps: { inputs: { a: input({ type: "file" }) } as Inputs } });
  act(() => result.current.setStoring("a", "large.csv"));
  expect(result.current.storing).toEqual(["large.csv"]);
  rerender({ inputs: {} });
  expect(result.current.storing).toEqual([]);
});
it("runs again with what was typed, also where the flow would have had the same by itself", () => {
  const own = { given: input({ default: 5 }), left: input({ default: 3 }), note: input({ type: "string" }), code: input() };
  const given = { given: 6, note: "n", code: "007" };
  const { result } = renderHook(() => useInputs(own, { given, isKept: true }));
  expect(result.current.drafts).toEqual({ given: "6", left: "3", note: "n", code: "007" });
  expect(result.current.values).toEqual({});
  act(() => result.current.set("given", "5"));
  act(() => result.current.set("left", "8"));
  act(() => result.current.set("note", ""));
  expect(result.current.values).toEqual({ given: 5, left: 8, note: null });
  act(() => result.current.set("left", "3"));
  act(() => result.current.set("given", "6"));
  act(() => result.current.set("note", "n"));
  expect(result.current.values).toEqual({});
});
it("starts anew with what was given, as it was given, and what was had before where the flow has another default now", () => {
  const newest = { same: input({ default: 6 }), names: input({ type: "list" }), left: input({ default: 7 }), old: input({ default: 8 }) };
  const given = { same: 6, names: ["1", "2"], gone: 1 };
  const { result } = renderHook(() => useInputs(newest, { given, before: { left: 7, old: 3 } }));
  expect(result.current.drafts).toEqual({ same: "6", names: '[\n  "1",\n  "2"\n]', left: "7", old: "3" });
  expect(result.current.values).toEqual({ same: 6, names: ["1", "2"], old: 3 });
  act(() => result.current.set("old", "8"));
  act(() => result.current.set("same", ""));
  expect(result.current.values).toEqual({ same: 6, names: ["1", "2"] });
});
it("reads what was given anew where the flow declares another type now", () => {
  const { result } = renderHook(() => useInputs({ count: input({ type: "number" }), late: input({ type: "number" }) }, { given: { count: "5", late: "soon" } }));
  expect(result.current.values).toEqual({ count: 5 });
  expect(Object.keys(result.current.problems)).toEqual(["late"]);
});
it("leaves a field empty that was given as nothing, and one that was emptied", () => {
  const { result } = renderHook(() => useInputs({ a: input({ type: "string", default: "x" }), b: input({ default: "y" }) }, { given: { a: null } }));
  expect(result.current.drafts).toEqual({ a: "", b: "y" });
  act(() => result.current.set("b", ""));
  expect(result.current.drafts["b"]).toBe("");
});
it("shows all defaults in the flow's order where the flow is known", () => {
  const wanted = { rows: input({ required: true }), depth: input({ default: 3 }), large: input({ default: "x".repeat(9) }), note: input() };
  expect(Object.entries(effectiveInputs({ inputs: { note: "n" }, defaults: { depth: 2 } }, wanted))).toEqual([["depth", 2], ["large", "x".repeat(9)], ["note", "n"]]);
  expect(effectiveInputs({ inputs: { note: "n" }, defaults: { depth: 2 } })).toEqual({ depth: 2, note: "n" });
});

it("shows at its field what the server refuses, also where a job takes it as an amount", () => {
  const amount = "job hog: memory is '5 XB' (from inputs.memory); write a size such as 200 MB";
  const refused = new ApiError(422, "invalid-request", amount, { problems: [amount, "input depth: it must be a number, not 'deep'"] });
  const { of, all } = refusedInputs(refused, ["memory", "depth"]);
  expect(all).toBe(true);
  expect(of["memory"]).toContain("write a size such as 200 MB");
  expect(of["depth"]).toContain("must be a number");
});
