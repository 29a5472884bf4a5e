/** What an exlet does: its steps, each with the values that it sets. */
import { duration } from "@/components/format";
import { stepsOf } from "./exlets";
import type { Flow } from "./queries";
import { flatten, shortValue } from "./values";

export function ExletSteps({ flow }: { flow: Flow }) {
  const steps = stepsOf(flow);
  if (!steps) return <span className="muted">more than a list of steps</span>;
  return (
    <ol className="exlet-steps">
      {steps.map((each) => (
        <li key={each.id}>
          <code>{each.do}</code> <span className="muted">{settingsText(each.settings)}</span>
        </li>
      ))}
    </ol>
  );
}

const SPAN = /(^|[._])(duration|ms)$/;

/** `env.SCRATCH = /scratch/b, wait = 1 s` */
export function settingsText(settings: Record<string, unknown>): string {
  return flatten(settings).filter((each) => each.path).map((each) => (SPAN.test(each.path) && typeof each.value === "number" ? `${each.path.replace(/_ms$/, "")} = ${duration(each.value)}` : `${each.path} = ${shortValue(each.value, 120)}`)).join(", ");
}
