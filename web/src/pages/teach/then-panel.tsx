/** The repair: one of those that there are, or one that is composed here. */
import { lazy, Suspense } from "react";
import { Icon } from "@/components/icon";
import { Panel } from "@/components/page";
import { ExletSteps } from "@/components/recovery/exlet-steps";
import { copyOf, type CaseValue } from "@/components/recovery/exlets";
import { RepairCards, type Repair } from "@/components/recovery/repair-cards";
import { Loading } from "@/components/states-of-page";
import { toast } from "@/components/toasts";
import { Word } from "@/components/word";
import type { RuleDraft } from "./draft";

const Composer = lazy(() => import("@/components/recovery/composer"));

export function ThenPanel(props: { draft: RuleDraft; repairs: readonly Repair[]; type: string; variables: Record<string, string>; values: readonly CaseValue[]; onChange: (part: Partial<RuleDraft>) => void }) {
  const { draft, onChange } = props;
  const chosen = props.repairs.find((each) => each.name === draft.exlet);
  const edit = (repair: Repair) => {
    const composed = copyOf(repair.name, repair.flow, props.repairs.map((each) => each.name));
    if (!composed) {
      toast("note", `${repair.name} does more than can be composed here`, "Write it in a file, and teach with that: mendflow rules add --from DECISION --if CONDITION --exlet FILE.");
      return;
    }
    onChange({ composing: true, composed });
  };
  return (
    <Panel
      title="Then"
      actions={
        draft.composing ? (
          <button type="button" className="button small" onClick={() => onChange({ composing: false })}>
            <Icon name="left" size={14} /> Choose a repair
          </button>
        ) : (
          <button type="button" className="button small" onClick={() => onChange({ composing: true })}>
            <Icon name="plus" size={14} /> Compose an exlet
          </button>
        )
      }
    >
      {draft.composing ? (
        <Suspense fallback={<Loading lines={6} />}>
          <p className="field-hint">What you compose is kept in this tab until you save the rule; “Choose a repair” leads back to those that there are.</p>
          <Composer draft={draft.composed} type={props.type} variables={props.variables} values={props.values} onChange={(composed) => onChange({ composed })} />
        </Suspense>
      ) : (
        <div className="stack">
          <p className="muted">
            A repair is a small flow of a few steps, called an <Word of="exlet" />. Choose one that there is, or compose one of <span className="nowrap"><Word of="primitives" />:</span> single steps, such as “run a command” and “run the job again with more memory”.
          </p>
          <RepairCards repairs={props.repairs} chosen={draft.exlet} onChoose={(exlet) => onChange({ exlet })} onEdit={edit} onCompose={() => onChange({ composing: true })} />
          {chosen && (
            <section aria-label={`What ${chosen.name} does`}>
              <h3>What {chosen.name} does</h3>
              <ExletSteps flow={chosen.flow} />
            </section>
          )}
        </div>
      )}
    </Panel>
  );
}
