/** Fields of forms: a label, the field, a hint, and what is wrong with it. */
import { useId, type ReactNode } from "react";

export function Field(props: {
  label: string;
  hint?: ReactNode;
  problem?: string | null;
  required?: boolean;
  children: (ids: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean | undefined }) => ReactNode;
}) {
  const id = useId();
  const said = props.problem ?? props.hint;
  return (
    <div className="field">
      <label htmlFor={id}>
        {props.label}
        {props.required && <span className="muted"> (needed)</span>}
      </label>
      {props.children({ id, "aria-describedby": said ? `${id}-said` : undefined, "aria-invalid": props.problem ? true : undefined })}
      {said && (
        <p id={`${id}-said`} className={props.problem ? "field-problem" : "field-hint"}>
          {said}
        </p>
      )}
    </div>
  );
}
