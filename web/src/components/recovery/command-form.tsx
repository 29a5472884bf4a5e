/** A command that an exlet runs, into which values of the failed case are put by a click. */
import { useRef, useState } from "react";
import { Field } from "@/components/field";
import { number } from "@/components/format";
import type { CaseValue } from "./exlets";

const SHOWN = 8;

export function CommandForm({ settings, values, onChange }: { settings: Record<string, unknown>; values: readonly CaseValue[]; onChange: (settings: Record<string, unknown>) => void }) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [every, setEvery] = useState(false);
  const command = String(settings["command"] ?? "");
  const name = String(settings["name"] ?? "");
  const insert = (text: string) => {
    const area = field.current;
    const [from, to] = area ? [area.selectionStart, area.selectionEnd] : [command.length, command.length];
    onChange({ ...settings, command: command.slice(0, from) + text + command.slice(to) });
    requestAnimationFrame(() => {
      area?.focus();
      area?.setSelectionRange(from + text.length, from + text.length);
    });
  };
  const shown = every ? values : values.slice(0, SHOWN);
  return (
    <div className="step-form">
      <Field label="command" required hint="A shell runs it in a folder of its own, on a pilot. If it fails, the exlet fails, and what comes after it is not done." problem={command.trim() ? null : "Say what it runs"}>
        {(ids) => <textarea {...ids} ref={field} className="step-command" rows={Math.min(14, Math.max(4, command.split("\n").length + 1))} spellCheck={false} placeholder="make-calibration …" value={command} onChange={(event) => onChange({ ...settings, command: event.target.value })} />}
      </Field>
      {values.length > 0 && (
        <div className="stack tight">
          <span className="field-hint">A click puts a value of the failed case where the cursor is. In another case it is the value of that one.</span>
          <span className="row wrap" role="group" aria-label="Values of the failed case">
            {shown.map((each) => (
              <button key={each.path} type="button" className="chip pick map-known" aria-label={`Insert ${each.path}`} title={`${each.expression}, here ${each.shown}`} onClick={() => insert(each.expression)}>
                {each.path} = {each.shown}
              </button>
            ))}
            {shown.length < values.length && <button type="button" className="link-button" onClick={() => setEvery(true)}>{number(values.length - shown.length)} more values</button>}
          </span>
        </div>
      )}
      <Field label="name" hint="Of the job, in the history of the case; letters, digits and -.">
        {(ids) => <input {...ids} value={name} placeholder="make-calibration" onChange={(event) => onChange({ ...settings, name: event.target.value.replace(/[^\w-]+/g, "-").replace(/^[^A-Za-z]+/, "") })} />}
      </Field>
    </div>
  );
}
