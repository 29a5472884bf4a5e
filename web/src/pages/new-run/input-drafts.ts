import { useState } from "react";
import type { Schemas } from "@/api/client";
import { named, ownOf } from "@/components/named";
import { draftOf, readDraft, type Draft } from "@/components/typed-values";

type Values = Record<string, unknown>;

/** The inputs of a flow as a form: the state of its fields, what is wrong, the values to send, and the files that the server
 * is being given, without which there is nothing to send yet. A field begins with what was `given`, else with what the flow had
 * then, if that is known, else with what it has now. A default that takes the place of what was `given` is sent, too. What was
 * typed stays with its name when the flow has other inputs meanwhile, and fields that nobody has touched follow the flow. */
export function useInputs(inputs: Record<string, Schemas["Input"]>, given: Values = {}, before: Values = {}) {
  const [typed, setTyped] = useState<Record<string, Draft>>({});
  const [storingOf, setStoringOf] = useState<Record<string, string>>({});
  const drafts = named<Draft>();
  const problems = named<string>();
  const values: Values = named<unknown>();
  for (const [name, wanted] of Object.entries(inputs)) {
    const draft = ownOf(typed, name) ?? draftOf(wanted, [given, before].find((each) => Object.hasOwn(each, name))?.[name] ?? (Object.hasOwn(given, name) ? undefined : wanted.default));
    drafts[name] = draft;
    const read = readDraft(wanted, draft);
    if ("problem" in read) problems[name] = read.problem;
    else if (read.value !== undefined) values[name] = read.value;
    else if (Object.hasOwn(given, name) && wanted.default != null) values[name] = wanted.default;
  }
  const set = (name: string, draft: Draft) => setTyped((all) => ({ ...all, [name]: draft }));
  const setStoring = (name: string, file: string) => setStoringOf((all) => ({ ...all, [name]: file }));
  const storing = Object.entries(storingOf).flatMap(([name, file]) => (file && Object.hasOwn(inputs, name) ? [file] : []));
  return { drafts, set, problems, values, storing, setStoring };
}
