/** Tells that the inputs of a schedule may use its due time, by an example, and shows what they are in the next run. */
import { Facts } from "@/components/page";
import { DUE_NAMES, inputsOfNextRun } from "./due-values";

const EXAMPLE = "reads-${{ schedule.date }}.csv";

export function DueInputs({ inputs, values, name }: { inputs: Record<string, unknown>; values: Record<string, unknown>; name: string }) {
  const due = { ...values, name };
  const found = values.date ? inputsOfNextRun(inputs, due) : [];
  const example = values.date ? inputsOfNextRun({ example: EXAMPLE }, due)[0]?.[1] : undefined;
  return (
    <div className="stack tight">
      <p className="muted">
        A text may use the due time: <code>{EXAMPLE}</code>
        {example && <> is <code>{example}</code> in the next run</>}. There {"are "}
        {DUE_NAMES.map(([each, means], at) => (
          <span key={each}>
            {at > 0 && ", "}
            <code>{`schedule.${each}`}</code> ({means})
          </span>
        ))}
        . A run that is caught up with has its own due time, not the moment at which it starts.
      </p>
      {found.length > 0 && (
        <section aria-label="In the next run">
          <h4>In the next run</h4>
          <Facts facts={found.map(([input, value]) => [input, <code key={input}>{value}</code>])} />
        </section>
      )}
    </div>
  );
}
