/** Fields of forms: a label, the field, a hint, and what is wrong with it. */
import { TextWithCode } from "@/components/text-with-code";
import { useId, type ReactNode } from "react";

/** Behind the name of what has to be filled in. */
export function NeededMark() {
  return (
    <span className="needed-mark">
      <span aria-hidden="true">*</span> <span className="needed-word">(needed)</span>
    </span>
  );
}

export function Field(props: {
  label: string;
  hint?: ReactNode;
  problem?: string | null;
  required?: boolean;
  children: (ids: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean | undefined; "aria-required": boolean | undefined }) => ReactNode;
}) {
  const id = useId();
  const said = props.problem ?? props.hint;
  return (
    <div className="field">
      <label htmlFor={id}>
        {props.label}
        {props.required && <NeededMark />}
      </label>
      {props.children({ id, "aria-describedby": said ? `${id}-said` : undefined, "aria-invalid": props.problem ? true : undefined, "aria-required": props.required || undefined })}
      {said && (
        <p id={`${id}-said`} className={props.problem ? "field-problem" : "field-hint"}>
          {typeof said === "string" ? <TextWithCode text={said} /> : said}
        </p>
      )}
    </div>
  );
}
