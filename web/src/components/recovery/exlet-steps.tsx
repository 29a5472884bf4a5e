/** What an exlet does: its steps, each with the values that it sets. One that runs commands, or is more than a list of
 * primitives, is shown as the text of its file: nobody puts in force what cannot be read. */
import { CodeView } from "@/components/code-view";
import { duration } from "@/components/format";
import { exletText } from "./exlet-text";
import { stepsOf } from "./exlets";
import type { Flow } from "./queries";
import { flatten, shortValue } from "./values";

export function ExletSteps({ flow }: { flow: Flow }) {
  const steps = stepsOf(flow);
  if (!steps || steps.some((each) => each.do === "run")) return <CodeView text={exletText(flow).trimEnd()} label={`Text of ${flow.name}`} language="yaml" />;
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
