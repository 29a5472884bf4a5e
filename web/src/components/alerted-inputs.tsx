/** What the case of an alert was given: alerts name a case by its id alone, and by its inputs people know it. */
import type { ReactNode } from "react";
import type { Alert } from "./alert-actions";
import { CaseInputs, DifferingContext, differingInputs } from "./case-inputs";

/** Inputs by which the cases of these alerts differ come first. */
export function CasesOfAlerts({ alerts, children }: { alerts: readonly Alert[]; children: ReactNode }) {
  const differing = differingInputs(alerts.flatMap(({ given }) => given ?? []));
  return <DifferingContext value={differing}>{children}</DifferingContext>;
}

/** After its sentence, which names the case as a rule. */
export function AlertedInputs({ alert: { case: id, given, sentence } }: { alert: Alert }) {
  if (!given || !(Object.keys(given.inputs).length + Object.keys(given.defaults).length + given.left_out.length)) return null;
  return (
    <p className="alert-inputs muted">
      {!sentence.includes(id) && <span className="nowrap">{id}:</span>}
      <CaseInputs view={given} />
    </p>
  );
}
