/** An exlet, composed of primitives: dragged from the palette onto the canvas by mouse, touch or keyboard (Enter takes one up,
 * Tab goes to a place, Enter lays it down), or added by its button. */
import { useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Button, GridList, GridListItem, isTextDropItem, useDragAndDrop } from "react-aria-components";
import { usePhone } from "@/app/screen-widths";
import { Field } from "@/components/field";
import { Icon } from "@/components/icon";
import { ErrorState } from "@/components/states-of-page";
import { Word } from "@/components/word";
import { settingsText } from "./exlet-steps";
import { flowOf, isWhole, lackOf, newStep, RUN, titleOf, WAIT, withSteps, type CaseValue, type ExletDraft, type ExletStep } from "./exlets";
import { PRIMITIVE_WORDS } from "./primitive-words";
import { checkExlet, primitivesQuery, type ExceptionType, type PrimitiveView } from "./queries";
import { StepForm } from "./step-form";
import { shortValue } from "./values";
import "./composer.css";

const KIND = "application/x-mendflow-primitive";

type Brick = Pick<PrimitiveView, "primitive" | "about"> & { schema: Record<string, unknown> };

const NEEDED = Object.keys(PRIMITIVE_WORDS);

function byNeed(bricks: readonly Brick[]): Brick[] {
  const place = (each: Brick) => (NEEDED.includes(each.primitive) ? NEEDED.indexOf(each.primitive) : NEEDED.length);
  return bricks.toSorted((one, other) => place(one) - place(other));
}

/** `isNamed`: it has the name by which rules know it, and keeps that. */
export default function Composer(props: { draft: ExletDraft; isNamed?: boolean; type: string; variables: Record<string, string>; values: readonly CaseValue[]; onChange: (draft: ExletDraft) => void }) {
  const { draft, type } = props;
  const phone = usePhone();
  const latest = useRef(draft);
  latest.current = draft;
  const [open, setOpen] = useState<string | null>(draft.steps[0]?.id ?? null);
  // What was added by its button, which may be far from the canvas: its form is gone to.
  const [added, setAdded] = useState<string | null>(null);
  const primitives = useQuery(primitivesQuery);
  const bricks = byNeed([...(primitives.data ?? []).filter((each) => each.types.includes(type as ExceptionType)), RUN, WAIT]);
  const [sought, setSought] = useState("");
  const found = bricks.filter((each) => `${titleOf(each.primitive)} ${PRIMITIVE_WORDS[each.primitive] ?? ""} ${each.about}`.toLowerCase().includes(sought.trim().toLowerCase()));
  const ready = draft.steps.length > 0 && isWhole(draft.steps) && draft.name.trim() !== "";
  const flow = ready ? flowOf({ ...draft, name: draft.name.trim() }) : null;
  const checked = useQuery({
    queryKey: ["rules", "check", flow, type],
    queryFn: ({ signal }) => checkExlet(flow as NonNullable<typeof flow>, [type as ExceptionType], signal),
    enabled: flow !== null,
    retry: false,
  });
  const put = (steps: ExletStep[]) => props.onChange(props.isNamed ? { ...latest.current, steps } : withSteps(latest.current, steps));
  const insert = (primitive: string, at = latest.current.steps.length): string => {
    const step = newStep(primitive);
    put(latest.current.steps.toSpliced(at, 0, step));
    setOpen(step.id);
    return step.id;
  };
  const palette = useDragAndDrop({ getItems: (keys) => [...keys].map((key) => ({ [KIND]: String(key), "text/plain": String(key) })) });
  const canvas = useDragAndDrop({
    getItems: (keys) => [...keys].map((key) => ({ "text/plain": `step ${String(key)}` })),
    acceptedDragTypes: [KIND],
    getDropOperation: (_target, types) => (types.has(KIND) ? "copy" : "move"),
    onInsert: (event) => {
      const steps = latest.current.steps;
      const at = steps.findIndex((each) => each.id === event.target.key) + (event.target.dropPosition === "after" ? 1 : 0);
      void laid(event.items).then((words) => words.toReversed().forEach((word) => insert(word, Math.max(0, at))));
    },
    onRootDrop: (event) => void laid(event.items).then((words) => words.forEach((word) => insert(word))),
    onReorder: (event) => {
      const steps = latest.current.steps;
      const moved = steps.filter((each) => event.keys.has(each.id));
      const rest = steps.filter((each) => !event.keys.has(each.id));
      const at = rest.findIndex((each) => each.id === event.target.key) + (event.target.dropPosition === "after" ? 1 : 0);
      put(rest.toSpliced(at, 0, ...moved));
    },
  });
  const move = (at: number, by: number) => {
    const steps = [...draft.steps];
    const [step] = steps.splice(at, 1);
    if (step) put(steps.toSpliced(at + by, 0, step));
  };
  return (
    <div className="composer">
      <div className="composer-palette">
        <h3 id="palette-head"><Word of="primitives">Primitives</Word></h3>
        <input type="search" aria-label="Search primitives" placeholder="run again, command, memory, skip, …" value={sought} onChange={(event) => setSought(event.target.value)} />
        <GridList aria-labelledby="palette-head" items={found.map((each) => ({ ...each, id: each.primitive }))} dragAndDropHooks={palette.dragAndDropHooks} selectionMode="none" className="brick-list" renderEmptyState={() => <p className="muted">No primitive is called so, or does that.</p>}>
          {(brick) => (
            <GridListItem id={brick.primitive} textValue={titleOf(brick.primitive)} className="brick">
              <Button slot="drag" className="brick-grip" aria-label={`Drag ${titleOf(brick.primitive)}`}>⠿</Button>
              <span className="brick-text">
                <strong>{titleOf(brick.primitive)}</strong>{" "}
                <span className="muted" title={brick.about}>{PRIMITIVE_WORDS[brick.primitive] ?? brick.about}</span>
              </span>
              <Button className="icon-button" aria-label={`Add ${titleOf(brick.primitive)}`} onPress={() => setAdded(insert(brick.primitive))}>
                <Icon name="plus" size={14} />
              </Button>
            </GridListItem>
          )}
        </GridList>
      </div>
      <div className="composer-canvas">
        <h3 id="canvas-head">The <Word of="exlet" /> does</h3>
        <GridList
          aria-labelledby="canvas-head"
          items={draft.steps.map((each, at) => ({ ...each, at, open: each.id === open }))}
          dependencies={[open, added, draft.steps]}
          dragAndDropHooks={canvas.dragAndDropHooks}
          selectionMode="none"
          keyboardNavigationBehavior="tab" // the arrows stay in the text that is written in a step
          className="step-list"
          renderEmptyState={() => <p className="step-empty">Drag a primitive here, or add it by its plus.</p>}
        >
          {(step) => (
            <GridListItem id={step.id} textValue={`${step.at + 1}: ${titleOf(step.do)}`} className="step">
              <div className="step-head">
                <Button slot="drag" className="brick-grip" aria-label={`Move ${titleOf(step.do)}`}>⠿</Button>
                <span className="rule-number">{step.at + 1}</span>
                <Button className="step-name" aria-expanded={step.open} aria-label={`Settings of step ${step.at + 1}, ${titleOf(step.do)}`} onPress={() => setOpen(step.open ? null : step.id)}>
                  <strong>{titleOf(step.do)}</strong>
                  {lackOf(step) ? <span className="step-lack"><Icon name="failures" size={12} /> {lackOf(step)}</span> : <span className="muted">{summary(step)}</span>}
                </Button>
                <Button className="icon-button" aria-label={`Move step ${step.at + 1} up`} isDisabled={step.at === 0} onPress={() => move(step.at, -1)}><Icon name="up" size={14} /></Button>
                <Button className="icon-button" aria-label={`Remove step ${step.at + 1}`} onPress={() => put(draft.steps.filter((each) => each.id !== step.id))}><Icon name="close" size={14} /></Button>
              </div>
              {step.open && <StepForm step={step} comesTo={step.id !== added ? undefined : phone ? "start" : "nearest"} variables={props.variables} values={props.values} brick={bricks.find((each) => each.primitive === step.do)} onChange={(next) => put(latest.current.steps.map((each) => (each.id === step.id ? next : each)))} />}
            </GridListItem>
          )}
        </GridList>
        {!props.isNamed && <Field label="Name of the exlet" required problem={draft.steps.length && !draft.name.trim() ? "Give it a name: rules refer to it by that" : null}>
          {(ids) => <input {...ids} value={draft.name} onChange={(event) => props.onChange({ ...draft, name: event.target.value.replace(/\s+/g, "-") })} />}
        </Field>}
        {checked.data?.problems.map((each) => <p key={each} className="field-problem" role="alert">{each}</p>)}
        {checked.data?.warnings.map((each) => <p key={each} className="field-hint">{each}</p>)}
        {checked.error && <ErrorState error={checked.error} compact />}
        <p className="field-hint">
          Branches, loops, containers or several jobs at once: write the exlet in a file, and <code>mendflow rules add --from DECISION --if CONDITION --exlet FILE</code> takes it.
        </p>
      </div>
    </div>
  );
}

async function laid(items: readonly Parameters<typeof isTextDropItem>[0][]): Promise<string[]> {
  return Promise.all(items.filter(isTextDropItem).map((each) => each.getText(each.types.has(KIND) ? KIND : "text/plain")));
}

function summary(step: ExletStep): string {
  if (step.do === "run") return [step.settings["name"], shortValue(String(step.settings["command"] ?? "").trim().split("\n")[0] ?? "")].filter(Boolean).join(": ");
  const said = Object.entries(step.settings).filter(([, value]) => value !== undefined && value !== "");
  return settingsText(Object.fromEntries(said));
}
