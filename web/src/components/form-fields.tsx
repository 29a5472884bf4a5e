/** The usual fields, with what is wrong with them. */
import type { HTMLInputTypeAttribute, ReactNode } from "react";
import { Field } from "./field";
import { readSize, readTime, SIZE_PROBLEM, TIME_PROBLEM } from "./quantities";

interface TextProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  hint?: ReactNode;
  problem?: string | null;
  required?: boolean;
  placeholder?: string;
  type?: HTMLInputTypeAttribute;
  inputMode?: "decimal";
  mono?: boolean;
  /** What can be chosen from, while anything may be written. */
  among?: readonly string[];
}

export function TextField(props: TextProps) {
  return (
    <Field label={props.label} hint={props.hint} problem={props.problem} required={props.required}>
      {(ids) => (
        <>
          <input
            {...ids}
            type={props.type ?? "text"}
            inputMode={props.inputMode}
            className={props.mono ? "mono" : undefined}
            list={props.among?.length ? `${ids.id}-among` : undefined}
            autoComplete="off"
            spellCheck={false}
            placeholder={props.placeholder}
            value={props.value}
            onChange={(event) => props.onChange(event.target.value)}
          />
          {props.among && props.among.length > 0 && (
            <datalist id={`${ids.id}-among`}>
              {props.among.map((each) => (
                <option key={each} value={each} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

export function AreaField(props: TextProps & { rows?: number }) {
  return (
    <Field label={props.label} hint={props.hint} problem={props.problem} required={props.required}>
      {(ids) => (
        <textarea
          {...ids}
          rows={props.rows ?? 3}
          className={props.mono ? "mono" : undefined}
          spellCheck={!props.mono}
          placeholder={props.placeholder}
          value={props.value}
          onChange={(event) => props.onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

export function SelectField<T extends string>(props: {
  label: string;
  value: T;
  onChange: (value: T) => void;
  choices: readonly (readonly [T, string])[];
  hint?: ReactNode;
  problem?: string | null;
  required?: boolean;
}) {
  return (
    <Field label={props.label} hint={props.hint} problem={props.problem} required={props.required}>
      {(ids) => (
        <select {...ids} value={props.value} onChange={(event) => props.onChange(event.target.value as T)}>
          {props.choices.map(([value, word]) => (
            <option key={value} value={value}>
              {word}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function CheckField(props: { label: ReactNode; checked: boolean; onChange: (checked: boolean) => void }) {
  return (
    <label className="check-label">
      <input type="checkbox" checked={props.checked} onChange={(event) => props.onChange(event.target.checked)} />
      {props.label}
    </label>
  );
}

/** A time such as `30 d`. Empty is allowed unless `required`. */
export function TimeField(props: Omit<TextProps, "type" | "among">) {
  const wrong = props.value.trim() !== "" && readTime(props.value) === null;
  return <TextField {...props} problem={wrong ? TIME_PROBLEM : props.problem} />;
}

/** A size such as `20 GB`. */
export function SizeField(props: Omit<TextProps, "type" | "among" | "problem">) {
  const wrong = props.value.trim() !== "" && readSize(props.value) === null;
  return <TextField {...props} problem={wrong ? SIZE_PROBLEM : null} />;
}

/** Several of a few: each is a box to check. */
export function ChoicesField<T extends string>(props: {
  label: string;
  choices: readonly (readonly [T, string])[];
  chosen: readonly T[];
  onChange: (chosen: T[]) => void;
  hint?: ReactNode;
}) {
  return (
    <fieldset className="choices">
      <legend>{props.label}</legend>
      <div className="row wrap">
        {props.choices.map(([value, word]) => (
          <CheckField
            key={value}
            label={word}
            checked={props.chosen.includes(value)}
            onChange={(checked) => props.onChange(checked ? [...props.chosen, value] : props.chosen.filter((each) => each !== value))}
          />
        ))}
      </div>
      {props.hint && <p className="field-hint">{props.hint}</p>}
    </fieldset>
  );
}
