// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, fireEvent, render, renderHook, waitFor } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { api, type Schemas } from "@/api/client";
import { effectiveInputs } from "@/components/case-inputs";
import { nullPrototypeRecord, ownProperty } from "@/components/own-properties";
import { useInputs } from "@/pages/new-run/input-drafts";
import { TaskForm } from "@/pages/user-task/task-form";

/** Names that every object of JavaScript has something under. */
const NAMES = ["constructor", "toString", "hasOwnProperty", "__proto__"];

const of = <T,>(value: (name: string) => T) => Object.fromEntries(NAMES.map((name) => [name, value(name)]));
const input = (more: Partial<Schemas["Input"]> = {}) => ({ type: "", required: false, default: null, description: "", ...more }) as Schemas["Input"];

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

it.each(NAMES)("has nothing under %s until it is put there", (name) => {
  const record = nullPrototypeRecord<string>();
  expect([record[name], ownProperty({}, name)]).toEqual([undefined, undefined]);
  record[name] = "mine";
  expect([record[name], Object.keys(record), ownProperty(record, name)]).toEqual(["mine", [name], "mine"]);
});

it("asks for answers of any name, and sends them", async () => {
  vi.stubGlobal("fetch", async () => new Response('{"may": ["reject"]}', { headers: { "Content-Type": "application/json" } }));
  const post = vi.spyOn(api, "POST").mockResolvedValue({ data: {}, response: new Response() } as never);
  const task = { id: "ask-1/1", case: "ask-1", item: "ask", role: "", title: "Ask", description: "", data: null, fields: of(() => "text"), state: "offered" } as unknown as Schemas["UserTaskView"];
  const { getByLabelText, getByRole, getAllByText } = render(<QueryClientProvider client={new QueryClient()}><TaskForm task={task} warning="" /></QueryClientProvider>);
  const complete = () => fireEvent.click(getByRole("button", { name: "Complete" }));
  complete();
  expect(getAllByText("An answer is needed")).toHaveLength(NAMES.length);
  for (const name of NAMES) fireEvent.change(getByLabelText(new RegExp(`^${name}`)), { target: { value: `of ${name}` } });
  complete();
  await waitFor(() => expect(post).toHaveBeenCalledOnce());
  const { outputs } = (post.mock.calls[0] as unknown as [string, { body: { outputs: object } }])[1].body;
  expect(Object.entries(JSON.parse(JSON.stringify(outputs)) as object)).toEqual(NAMES.map((name) => [name, `of ${name}`]));
});

it("begins with no draft of an input of such a name, and sends what was typed", () => {
  const inputs = of(() => input({ type: "string", required: true, default: undefined }));
  const { result } = renderHook(() => useInputs(inputs));
  expect(NAMES.map((name) => result.current.drafts[name])).toEqual(NAMES.map(() => ""));
  expect(Object.keys(result.current.problems)).toEqual(NAMES);
  for (const name of NAMES) act(() => result.current.set(name, `of ${name}`));
  expect(Object.entries(result.current.values)).toEqual(NAMES.map((name) => [name, `of ${name}`]));
  expect(Object.keys(result.current.problems)).toEqual([]);
});

it("takes such an input as given only if it was", () => {
  const inputs = of((name) => input({ type: "string", default: `by default ${name}` }));
  const { result } = renderHook(() => useInputs(inputs, { given: {}, before: {} }));
  expect(NAMES.map((name) => result.current.drafts[name])).toEqual(NAMES.map((name) => `by default ${name}`));
  expect(Object.keys(result.current.values)).toEqual([]);
  expect(Object.keys(effectiveInputs({ inputs: {}, defaults: {} }, of(() => input({ required: true }))))).toEqual([]);
});
