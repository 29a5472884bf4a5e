/** Does one act to many cases, and reports each of them: done, or refused with what the API said. */
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { messageOf } from "@/api/errors";
import type { CaseView } from "@/api/queries";
import { labelFor, refreshCases, type CaseAct } from "./case-acts";
import { Dialog } from "./dialog";
import { Field } from "./field";
import { NewerFlow } from "./newer-flow";
import { plural } from "./format";
import { useTargetWhileOpen } from "./target-while-open";
import { StateBadge } from "./state-badge";
import { Glossed } from "./word";

interface Outcome {
  id: string;
  state: "waiting" | "running" | "done" | "failed" | "stopped";
  text: string;
  made?: string;
}

const AT_ONCE = 4;
const SEEN = 300;
const NAMED = 3;
const WEIGHT: Record<Outcome["state"], number> = { failed: 0, running: 1, waiting: 2, stopped: 3, done: 4 };

export function CaseActDialog(props: { act: CaseAct | null; cases: readonly CaseView[]; onClose: () => void; onDone?: (made: string[]) => void }) {
  const { act } = props;
  const opened = useTargetWhileOpen(act !== null, props.cases);
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const [outcomes, setOutcomes] = useState<Outcome[] | null>(null);
  const [busy, setBusy] = useState(false);
  if (!act || !opened) return null;
  const now = new Map(props.cases.map((each) => [each.id, each]));
  const cases = opened.map((each) => now.get(each.id) ?? each);
  const since = cases.filter((each, at) => !act.fits(each) && act.fits(opened[at] as CaseView));
  const label = cases.length === 1 && cases[0] ? labelFor(act, cases[0]) : act.label;
  const fitting = cases.filter((each) => act.fits(each));
  const others = cases.length - fitting.length;

  const close = () => {
    setOutcomes(null);
    setReason("");
    props.onClose();
  };
  const go = async () => {
    setBusy(true);
    const results: Outcome[] = cases.map((each) =>
      act.fits(each) ? { id: each.id, state: "waiting", text: "" } : { id: each.id, state: "stopped", text: `left out: ${act.why}` },
    );
    const show = () => setOutcomes([...results]);
    const open = results.filter((each) => each.state === "waiting");
    const worker = async () => {
      for (let one = open.shift(); one; one = open.shift()) {
        one.state = "running";
        show();
        try {
          const answer = await act.run(one.id, reason);
          one.state = "done";
          one.made = act.operation === "rerun" ? answer : undefined;
        } catch (refused) {
          one.state = "failed";
          one.text = messageOf(refused);
        }
        show();
      }
    };
    await Promise.all(Array.from({ length: act.oneByOne ? 1 : AT_ONCE }, worker));
    setBusy(false);
    await refreshCases(client);
    const made = results.flatMap((each) => (each.made ? [each.made] : []));
    if (cases.length === 1 && results[0]?.state === "done") {
      close();
      props.onDone?.(made);
    }
  };
  // Of very many the refused ones, and those at work, stand before what is done.
  const seen = (outcomes ?? []).toSorted((one, other) => WEIGHT[one.state] - WEIGHT[other.state]).slice(0, SEEN);
  const refused = outcomes?.filter((each) => each.state === "failed").length ?? 0;
  const done = outcomes?.filter((each) => each.state === "done").length ?? 0;
  return (
    <Dialog
      title={cases.length === 1 ? `${label}: ${cases[0]?.id}` : `${label}: ${plural(cases.length, "case")}`}
      open
      onClose={close}
      wide={cases.length > 1}
      footer={
        outcomes && !busy ? (
          <button type="button" className="button primary" onClick={close}>
            Close
          </button>
        ) : (
          <>
            <button type="button" className="button" onClick={close}>
              Not now
            </button>
            <button type="button" className={act.danger ? "button danger" : "button primary"} disabled={busy || fitting.length === 0} onClick={() => void go()}>
              {cases.length > 1 ? act.asks(plural(fitting.length, "case")) : act.danger ? act.asks("the case") : label}
            </button>
          </>
        )
      }
    >
      {!outcomes && (
        <>
          <p>
            <Glossed text={fitting.length ? act.will(fitting.length) : `This fits none of them: ${act.why}.`} />
            {act.operation === "rerun" && cases.length === 1 && <NewerFlow view={cases[0]} before=" Its flow has a newer version, which this does not take:" after="." onOpen={close} />}
          </p>
          {since.length > 0 && <p className="notice" role="status">Meanwhile {since.slice(0, NAMED).map((each) => each.id).join(", ")}{since.length > NAMED && ` and ${since.length - NAMED} more`} changed: {act.why}.</p>}
          {others > 0 && fitting.length > 0 && (
            <p className="muted">
              {plural(others, "case")} {others === 1 ? "is" : "are"} left out: {act.why}.
            </p>
          )}
          {act.name === "cancel" && (
            <Field label="Reason" hint="It is kept in the history.">
              {(ids) => <input {...ids} value={reason} onChange={(event) => setReason(event.target.value)} />}
            </Field>
          )}
        </>
      )}
      {outcomes && (
        <>
          {!busy && (
            <p role="status">
              {[done > 0 && act.did(done), refused > 0 && `${plural(refused, "case is", "cases are")} refused`].filter(Boolean).join("; ")}.
            </p>
          )}
          <ul className="rows outcomes" aria-label="Outcome of each case">
            {seen.map((each) => (
              <li key={each.id}>
                {each.state === "done" ? <StateBadge {...act.then} /> : <StateBadge state={each.state} word={each.state === "failed" ? "refused" : each.state === "stopped" ? "left out" : each.state === "running" ? "being asked" : undefined} />}
                <Link to="/cases/$case" params={{ case: each.id }}>
                  {each.id}
                </Link>
                <span className="outcome-text">
                  {each.made ? (
                    <Link to="/cases/$case" params={{ case: each.made }}>
                      {each.made}
                    </Link>
                  ) : (
                    each.text
                  )}
                </span>
              </li>
            ))}
          </ul>
          {outcomes.length > SEEN && <p className="muted">{plural(outcomes.length - SEEN, "more case")} not shown.</p>}
        </>
      )}
    </Dialog>
  );
}
