/** What an exlet does: its steps, each with the values that it sets. */
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

/** `env.SCRATCH = /scratch/b, wait_ms = 1000` */
export function settingsText(settings: Record<string, unknown>): string {
  return flatten(settings).filter((each) => each.path).map((each) => `${each.path} = ${shortValue(each.value, 120)}`).join(", ");
}
