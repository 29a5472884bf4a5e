/** The settings of a step, as its JSON Schema says; each can also be an expression over the context. */
import { useState } from "react";
import { Field } from "@/components/field";
import { Icon } from "@/components/icon";
import { ownProperty } from "@/components/own-properties";
import { readSize, readTime, writeSize, writeTime } from "@/components/quantities";
import { CommandForm } from "./command-form";
import { isNeeded, plainOf, settingsOf, suggestionsFor, type CaseValue, type ExletStep, type JsonSchema } from "./exlets";
import { SourcesInput } from "./sources-input";
import { shortValue } from "./values";

const KNOWN_MAX = 8;
const FIRST: Record<string, string[]> = {
  "re-submit": ["wait_ms", "env", "memory_bytes", "avoid_hosts", "sources"],
  "retry-later": ["level", "env"],
  "re-stage": ["way"],
  notify: ["message"],
};

interface Setting {
  name: string;
  /** Where it stands: `resources.memory_bytes` is inside of a map. */
  path: string[];
  schema: JsonSchema;
}

function settingsIn(schema: JsonSchema): Setting[] {
  return settingsOf(schema).flatMap(([name, each]): Setting[] => {
    const inner = each["properties"] as Record<string, JsonSchema> | undefined;
    if (!inner) return [{ name, path: [name], schema: each }];
    return Object.entries(inner)
      .filter(([, one]) => Object.keys(one).length > 0)
      .map(([part, one]) => ({ name: part, path: [name, part], schema: plainOf(one) }));
  });
}

export function StepForm(props: { step: ExletStep; brick: { schema: JsonSchema } | undefined; variables: Record<string, string>; values: readonly CaseValue[]; onChange: (step: ExletStep) => void }) {
  const { step, brick } = props;
  const [every, setEvery] = useState(false);
  if (!brick) return null;
  if (step.do === "run") return <CommandForm settings={step.settings} values={props.values} onChange={(settings) => props.onChange({ ...step, settings })} />;
  const targets = ((brick.schema["properties"] as Record<string, JsonSchema> | undefined)?.["target"]?.["enum"] ?? []) as string[];
  const all = settingsIn(brick.schema);
  const first = FIRST[step.do];
  const isFirst = (each: Setting) => !first || first.includes(each.name) || read(step.settings, each.path) !== undefined || isNeeded(brick.schema, each.name);
  const shown = every ? all : all.filter(isFirst);
  const set = (path: string[], value: unknown) => props.onChange({ ...step, settings: written(step.settings, path, value) });
  return (
    <div className="step-form">
      {targets.length > 1 && (
        <Field label="of what">
          {(ids) => (
            <select {...ids} value={step.target ?? "item"} onChange={(event) => props.onChange({ ...step, target: event.target.value })}>
              {targets.map((each) => <option key={each}>{each}</option>)}
            </select>
          )}
        </Field>
      )}
      {shown.map((each) => (
        <SettingField key={each.path.join(".")} setting={each} known={each.name === "env" ? props.variables : undefined} needed={isNeeded(brick.schema, each.name)} value={read(step.settings, each.path)} onChange={(value) => set(each.path, value)} />
      ))}
      {all.length > shown.length && (
        <button type="button" className="link-button" onClick={() => setEvery(true)}>{all.length - shown.length} more settings</button>
      )}
      {all.length === 0 && targets.length < 2 && <p className="muted">It has no settings.</p>}
    </div>
  );
}

function read(settings: Record<string, unknown>, path: string[]): unknown {
  return path.reduce<unknown>((value, name) => (typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined), settings);
}

function written(settings: Record<string, unknown>, path: string[], value: unknown): Record<string, unknown> {
  const [name, ...rest] = path as [string, ...string[]];
  const next = { ...settings };
  if (rest.length) next[name] = written((settings[name] ?? {}) as Record<string, unknown>, rest, value);
  else if (value === undefined) delete next[name];
  else next[name] = value;
  return next;
}

const WORDS: Record<string, string> = { wait_ms: "wait before", duration: "how long", wall_ms: "time limit", memory_bytes: "memory", disk_bytes: "disk", avoid_hosts: "not on hosts", sources: "other input files", env: "environment", way: "which way" };

const HINTS: Record<string, string> = { sources: "Another file for an input, by the path of the input in the job's folder, whatever gave it the first one.", env: "Variables that the job gets for the next try, such as SCRATCH with the value /scratch/b. All its others stay as they are." };

function SettingField({ setting, value, known, needed, onChange }: { setting: Setting; value: unknown; known: Record<string, string> | undefined; needed: boolean; onChange: (value: unknown) => void }) {
  const { schema, name } = setting;
  const suggestions = suggestionsFor(name);
  const label = WORDS[name] ?? name.replaceAll("_", " ");
  const chosen = suggestions.find((each) => JSON.stringify(each.value) === JSON.stringify(value));
  return (
    <Field label={label} required={needed} hint={HINTS[name] ?? (!/_(bytes|ms)$|^duration$/.test(name) && typeof schema["description"] === "string" && !suggestions.length ? schema["description"] : undefined)}>
      {(ids) => (
        <>
          {/_(bytes|ms)$|^duration$/.test(name) ? <QuantityInput ids={ids} of={name.endsWith("_bytes") ? "size" : "time"} value={value} onChange={onChange} /> : <Input ids={ids} schema={schema} value={value} onChange={onChange} label={label} known={known} />}
          {suggestions.length > 0 && (
            <span className="row wrap" role="group" aria-label={`Values for ${label}`}>
              {suggestions.map((each) => (
                <button key={each.label} type="button" className="chip pick" aria-pressed={chosen === each} onClick={() => onChange(chosen === each ? undefined : each.value)}>
                  {each.label}
                </button>
              ))}
            </span>
          )}
        </>
      )}
    </Field>
  );
}

type Ids = { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean | undefined };

function Input({ ids, schema, value, onChange, label, known = {} }: { ids: Ids; schema: JsonSchema; value: unknown; onChange: (value: unknown) => void; label: string; known?: Record<string, string> }) {
  const choices = schema["enum"] as string[] | undefined;
  const types = [schema["type"]].flat();
  if (choices) {
    return (
      <select {...ids} value={String(value ?? "")} onChange={(event) => onChange(event.target.value || undefined)}>
        <option value="">as it is</option>
        {choices.map((each) => <option key={each}>{each}</option>)}
      </select>
    );
  }
  if (types.includes("boolean")) {
    return (
      <select {...ids} value={value === undefined ? "" : String(value)} onChange={(event) => onChange(event.target.value === "" ? undefined : event.target.value === "true")}>
        <option value="">not said</option>
        <option value="true">yes</option>
        <option value="false">no</option>
      </select>
    );
  }
  if (label === WORDS["sources"] && typeof value !== "string") return <SourcesInput ids={ids} value={(value ?? {}) as Record<string, unknown>} onChange={onChange} />;
  if (types.includes("object") && typeof value !== "string") return <MapInput ids={ids} label={label} known={known} value={(value ?? {}) as Record<string, unknown>} onChange={onChange} />;
  const text = value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
  return (
    <input
      {...ids}
      value={text}
      placeholder={types.includes("number") || types.includes("integer") ? "a number, or ${{ … }}" : types.includes("array") ? "names, by commas" : ""}
      onChange={(event) => onChange(readText(event.target.value, types))}
    />
  );
}

/** A size or a time with its unit; what the exlet has is bytes or milliseconds. */
function QuantityInput({ ids, of, value, onChange }: { ids: Ids; of: "size" | "time"; value: unknown; onChange: (value: unknown) => void }) {
  const shown = (each: unknown) => (typeof each === "number" ? (of === "size" ? writeSize(each) : writeTime(each)) : typeof each === "string" ? each : "");
  const [typed, setTyped] = useState({ text: shown(value), value });
  const text = typed.value === value ? typed.text : shown(value); // chosen by a click
  const type = (next: string) => {
    const known = readQuantity(next, of);
    setTyped({ text: next, value: known });
    onChange(known);
  };
  const bare = /^\s*[1-9]\d*\s*$/.test(text) ? text.trim() : "";
  return (
    <>
      <input {...ids} value={text} placeholder={of === "size" ? "such as 4 GB, or ${{ … }}" : "such as 10 min, or ${{ … }}"} onChange={(event) => type(event.target.value)} />
      {bare && (
        <span className="field-problem" role="status">
          Without a unit these are {bare} {of === "size" ? "bytes" : "ms"}: write {bare} {of === "size" ? "GB" : "min"}, say.
        </span>
      )}
    </>
  );
}

/** Bytes or milliseconds; a text that is neither stays as it is, for the check of the exlet to say so. */
export function readQuantity(text: string, of: "size" | "time"): unknown {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  if (/^\d+$/.test(trimmed)) return Number(trimmed);
  return (of === "size" ? readSize(trimmed) : readTime(trimmed)) ?? trimmed;
}

function readText(text: string, types: unknown[]): unknown {
  if (text === "") return undefined;
  if (text.includes("${{")) return text;
  if ((types.includes("number") || types.includes("integer")) && Number.isFinite(Number(text))) return Number(text);
  if (types.includes("array")) return text.split(",").map((each) => each.trim());
  return text;
}

interface MapRow {
  id: number;
  name: string;
  value: string;
}

/** `known`: what the job has now; a click takes it over, to be changed. */
function MapInput({ ids, value, onChange, label, known }: { ids: Ids; value: Record<string, unknown>; onChange: (value: unknown) => void; label: string; known: Record<string, string> }) {
  const [rows, setRows] = useState<MapRow[]>(() => Object.entries(value).map(([name, each], id) => ({ id, name, value: typeof each === "string" ? each : JSON.stringify(each) })));
  const [nextId, setNextId] = useState(rows.length);
  const put = (next: MapRow[]) => {
    setRows(next);
    onChange(Object.fromEntries(next.filter((row) => row.name).map((row) => [row.name, row.value])));
  };
  const add = (name: string, value: string) => {
    setNextId(nextId + 1);
    put([...rows, { id: nextId, name, value }]);
  };
  const change = (id: number, name: string, value: string) => put(rows.map((row) => (row.id === id ? { id, name, value } : row)));
  const free = Object.entries(known).filter(([name]) => !rows.some((row) => row.name === name)).slice(0, KNOWN_MAX);
  return (
    <div className="stack tight">
      {rows.map(({ id, name, value: each }, at) => (
        <div key={id} className="map-row">
          <input list={`${ids.id}-names`} {...(at === 0 ? ids : {})} aria-label={`Name ${at + 1} of ${label}`} placeholder="NAME" value={name} onChange={(event) => change(id, event.target.value, each || (ownProperty(known, event.target.value) ?? ""))} />
          <button type="button" className="icon-button" aria-label={`Remove ${name || "row"}`} onClick={() => put(rows.filter((row) => row.id !== id))}><Icon name="close" size={14} /></button>
          <input className="map-value" aria-label={`Value ${at + 1} of ${label}`} placeholder="value" title={each} value={each} onChange={(event) => change(id, name, event.target.value)} />
        </div>
      ))}
      <datalist id={`${ids.id}-names`}>
        {Object.keys(known).map((each) => <option key={each} value={each} />)}
      </datalist>
      {free.length > 0 && (
        <span className="row wrap" role="group" aria-label="Variables of the job">
          {free.map(([name, each]) => (
            <button key={name} type="button" className="chip pick map-known" title={`${name} is ${each} now`} onClick={() => add(name, each)}>
              {name}={shortValue(each, 40)}
            </button>
          ))}
        </span>
      )}
      <button type="button" id={rows.length ? undefined : ids.id} className="link-button" onClick={() => add("", "")}>add a {label === "environment" ? "variable" : "value"}</button>
    </div>
  );
}
