import { useState } from "react";
import type { Schemas } from "@/api/client";
import { writeExactly } from "@/api/exact-json";
import { nullPrototypeRecord, ownProperty } from "@/components/own-properties";
import { draftOf, fits, readDraft, type Draft } from "@/components/typed-values";

type Values = Record<string, unknown>;

interface Earlier {
  /** What somebody gave before. */
  given?: Values;
  /** What the flow had then for all else. */
  before?: Values;
  /** Whether the server takes by itself what was given, so that only what is different is sent. */
  isKept?: boolean;
}

/** The inputs of a flow as a form: the state of its fields, what is wrong, the values to send, and the files that the server
 * is being given, without which there is nothing to send yet. A field begins with what was `given`, else with what the flow had
 * then, if that is known, else with what it has now; what nobody has changed is sent as it was, not as it reads in its field. What
 * is sent is all that the server would not take by itself, and what was given, unless the server keeps that. What was typed stays
 * with its name when the flow has other inputs meanwhile, and fields that nobody has touched follow the flow. */
export function useInputs(inputs: Record<string, Schemas["Input"]>, { given = {}, before = {}, isKept = false }: Earlier = {}) {
  const [typed, setTyped] = useState<Record<string, Draft>>({});
  const [storingOf, setStoringOf] = useState<Record<string, string>>({});
  const drafts = nullPrototypeRecord<Draft>();
  const problems = nullPrototypeRecord<string>();
  const values: Values = nullPrototypeRecord<unknown>();
  for (const [name, wanted] of Object.entries(inputs)) {
    const byDefault = wanted.default ?? null;
    const begins = [given, before].find((each) => Object.hasOwn(each, name))?.[name];
    const first = draftOf(wanted, begins === undefined ? byDefault : begins);
    const draft = ownProperty(typed, name) ?? first;
    drafts[name] = draft;
    const isAsItWas = begins !== undefined && fits(wanted, begins) && isEqual(draft, first);
    const read = isAsItWas ? { value: begins } : readDraft(wanted, draft);
    if ("problem" in read) {
      problems[name] = read.problem;
      continue;
    }
    const value = read.value ?? byDefault;
    const byItself = isKept && Object.hasOwn(given, name) ? given[name] : byDefault;
    if (!isEqual(value, byItself) || (Object.hasOwn(given, name) && !isKept)) values[name] = value;
  }
  const set = (name: string, draft: Draft) => setTyped((all) => ({ ...all, [name]: draft }));
  const setStoring = (name: string, file: string) => setStoringOf((all) => ({ ...all, [name]: file }));
  const storing = Object.entries(storingOf).flatMap(([name, file]) => (file && Object.hasOwn(inputs, name) ? [file] : []));
  return { drafts, set, problems, values, storing, setStoring };
}

function isEqual(one: unknown, other: unknown): boolean {
  return one === other || writeExactly(one) === writeExactly(other);
}
