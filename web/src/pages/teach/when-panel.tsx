/** The condition: its parts with their operators, the server's candidates, and the text, which is always there. */
import { useQuery } from "@tanstack/react-query";
import type { ApiError } from "@/api/errors";
import { CodeView, type CodeCompletion } from "@/components/code-view";
import { Icon } from "@/components/icon";
import { Panel } from "@/components/page";
import { joinTerms, OPERATOR_WORDS, operatorsFor, readTerms, splitTerms, withTerm, writeTerm, type Operator, type Term } from "@/components/recovery/conditions";
import { lookedForFirst } from "@/components/recovery/distinguishing-values";
import { contextPathsQuery, type ContextPath, type DecisionView, type FailureView } from "@/components/recovery/queries";
import { shortValue } from "@/components/recovery/values";

const GHOSTS = 5;

export function WhenPanel(props: { view: FailureView; decision: DecisionView | undefined; condition: string; problem: ApiError | null; onChange: (condition: string) => void }) {
  const { condition, onChange, decision } = props;
  const terms = readTerms(condition);
  const paths = useQuery(contextPathsQuery(decision?.flow ?? "", decision?.type ?? "", decision?.task ?? ""));
  const replace = (at: number, text: string | null) => {
    const texts = splitTerms(condition);
    onChange(joinTerms(text === null ? texts.filter((_, each) => each !== at) : texts.map((each, place) => (place === at ? text : each))));
  };
  const place = (text: string) => lookedForFirst(readTerms(text)[0]?.path ?? "");
  // fault.exit_code, job.exit_code and outcome.exit_code say the same: the first of them is offered.
  const says = (text: string) => text.replace(/^(fault|job|outcome)\.exit_code\b/, "exit_code");
  const offered = [...new Map(props.view.candidates.toReversed().toSorted((one, other) => place(other.condition) - place(one.condition)).map((each) => [says(each.condition), each])).values()];
  const ghosts = offered.filter((each) => !terms.some((term) => says(term.text) === says(each.condition))).toSorted((one, other) => place(one.condition) - place(other.condition)).slice(0, GHOSTS);
  return (
    <Panel title="When">
      <div className="stack">
        <div className="stack when-parts">
          {terms.length > 0 ? (
            <ul className="term-list" aria-label="Parts of the condition">
              {terms.map((term, at) => (
                <li key={`${at}-${term.path ?? term.text}`} className="term">
                  {at > 0 && <span className="muted term-and">and</span>}
                  <TermView term={term} onChange={(text) => replace(at, text)} />
                  <button type="button" className="icon-button" aria-label={`Remove ${term.text}`} onClick={() => replace(at, null)}>
                    <Icon name="close" size={14} />
                  </button>
                </li>
              ))}
            </ul>
          ) : (
            <p className="muted">Nothing yet. Point at a value of the case, or begin with one of these.</p>
          )}
          {ghosts.length > 0 && (
            <div className="row wrap" role="group" aria-label="Conditions that tell these cases apart">
              {ghosts.map((each) => (
                <button key={each.condition} type="button" className="ghost-term" title={each.reason} onClick={() => onChange(withTerm(condition, each.condition))}>
                  <Icon name="plus" size={12} /> <code>{each.condition}</code>
                </button>
              ))}
            </div>
          )}
        </div>
        <div className="condition-text">
          <CodeView
            text={condition}
            label="Condition as text"
            language="cel"
            oneLine
            placeholder="such as fault.exit_code == 7"
            onChange={onChange}
            problems={props.problem ? [{ line: 1, severity: "error", message: props.problem.message }] : []}
            complete={(before) => completions(before, paths.data ?? [])}
          />
          {/* The room for it is always there: what stands below does not move when it comes and goes. */}
          <p className={props.problem ? "condition-note field-problem" : "condition-note field-hint"} role={props.problem ? "alert" : undefined}>
            {props.problem ? props.problem.message : "Point and choose, or write it here; Ctrl and Space offers the names that there are."}
          </p>
        </div>
      </div>
    </Panel>
  );
}

function TermView({ term, onChange }: { term: Term; onChange: (text: string) => void }) {
  const { path, operator, literal } = term;
  if (!path || !operator) return <code className="term-raw">{term.text}</code>;
  const choices = [...new Set<Operator>([operator, ...operatorsFor(literal)])];
  return (
    <>
      <code className="value-path">{path}</code>
      <select aria-label={`Operator for ${path}`} value={operator} onChange={(event) => onChange(writeTerm(path, event.target.value as Operator, literal ?? "true"))}>
        {choices.map((each) => (
          <option key={each} value={each}>{OPERATOR_WORDS[each]}</option>
        ))}
      </select>
      {operator !== "is there" && <code className="value-text" title={literal}>{shortValue(literal, 60)}</code>}
    </>
  );
}

function completions(before: string, paths: readonly ContextPath[]): CodeCompletion[] {
  const word = /[\w.]*$/.exec(before)?.[0] ?? "";
  const found = paths.filter((each) => each.path.startsWith(word) || (word.length > 2 && each.path.includes(word))).slice(0, 60);
  return found.map((each) => ({ label: each.path, detail: each.types.join(" or "), info: each.samples.length ? `such as ${each.samples.slice(0, 3).map((value) => shortValue(value, 40)).join(", ")}` : undefined }));
}
