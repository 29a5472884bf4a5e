/** What rules did about a cause, what they would do now, and the sentence that is still to be said. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMay } from "@/api/session";
import { plural } from "@/components/format";
import { Panel } from "@/components/page";
import { resultWord } from "@/components/recovery/decision-words";
import { conclusionQuery, ruleSetQuery, type DecisionView, type FailureView } from "@/components/recovery/queries";
import { ruleWords, treeKey } from "@/components/recovery/rule-walk";
import { Loaded } from "@/components/states-of-page";

/** Why the built-in rules left it, where that is what its author wants. */
function retriesWords(decision: DecisionView | undefined): string {
  if (decision?.retries !== "none" && decision?.retries !== "spent") return "";
  const why = decision.retries === "none" ? "its flow says “retries: 0”" : "its “retries” were used up";
  const lacks = decision.fault?.category;
  const more = lacks === "memory" || lacks === "time" ? ` Without that, they would have given it more ${lacks}.` : "";
  return ` The built-in rules leave it alone, as ${why}.${more}`;
}

export function RulesOfGroup({ view, decision, mayTeach }: { view: FailureView; decision: DecisionView | undefined; mayTeach: boolean }) {
  const { group } = view;
  const mayEvaluate = useMay("evaluate_rules");
  const isDecided = group.rejected === group.count;
  const best = view.candidates[0]?.condition;
  const asked = useWouldDo(mayEvaluate && !isDecided ? decision : undefined);
  const isTaught = group.handled.some((each) => each.rules && !each.passive && each.exlet) || Boolean(asked.data?.conclusion?.exlet);
  return (
    <Panel title="Rules" className="group-rules">
      <div className="stack">
        {!isDecided && !isTaught && !asked.isLoading && <p className="when-then">
          <span className="muted">When</span> {best ? <code>{best}</code> : "…"} <span className="muted">then</span>{" "}
          {mayTeach ? (
            <Link to="/failures/$group/teach" params={{ group: group.id }} search={{ term: best }}>choose a repair</Link>
          ) : (
            <span className="muted">…</span>
          )}
        </p>}
        <section className="stack tight">
          <h3>What was done</h3>
          {group.waiting > 0 && <p>{plural(group.waiting, "failure")} {group.waiting === 1 ? "waits" : "wait"} for a person.</p>}
          {group.unhandled > 0 && <p>{plural(group.unhandled, "time")} no rule fitted it, and nothing was done.{retriesWords(decision)}</p>}
          {group.run_again > 0 && <p>{plural(group.run_again, "time")} no rule fitted it, and somebody has run the case again since.</p>}
          {group.settled > 0 && <p>{plural(group.settled, "time")} no rule fitted it, and the case completed all the same or was cancelled, or a loop lets it fail.</p>}
          {group.rejected > 0 && <p>{plural(group.rejected, "time")} a person rejected a task, and the case ended by that. It is a decision: no rule is wanted for it.</p>}
          {group.handled.map((each) => (
            <p key={`${each.rules}/${each.rule}/${each.exlet}/${each.passive}`}>
              {each.rules ? (
                <Link to="/rules/$name" params={{ name: each.rules }} search={{ tree: treeKey(group.type, each.tree), rule: each.rule }}>
                  {ruleWords({ ...each, type: group.type, task: each.tree })}
                </Link>
              ) : (
                "a person"
              )}{" "}
              {each.passive ? "would have done" : "did"} <strong>{each.exlet || "nothing"}</strong> {plural(each.count, "time")}
              {Object.keys(each.results).length > 0 && `: ${Object.entries(each.results).map(([word, count]) => `${count} ${resultWord(word)}`).join(", ")}`}
            </p>
          ))}
          {!group.waiting && !group.unhandled && !group.run_again && !group.settled && !group.rejected && !group.handled.length && <p className="muted">Nothing yet.</p>}
        </section>
        {mayEvaluate && decision && !isDecided && (
          <section className="stack tight">
            <h3>What the rules would do now</h3>
            <WouldDo said={asked} />
          </section>
        )}
      </div>
    </Panel>
  );
}

/** What the rules, as they are now, say about a failure. */
function useWouldDo(decision: DecisionView | undefined) {
  const set = useQuery({ ...ruleSetQuery(decision?.flow ?? ""), enabled: decision !== undefined });
  return useQuery({ ...conclusionQuery(decision?.flow ?? "", decision?.id ?? "", set.data?.version ?? 0), enabled: decision !== undefined && set.isSuccess });
}

function WouldDo({ said }: { said: ReturnType<typeof useWouldDo> }) {
  return (
    <Loaded query={said} lines={1}>
      {({ conclusion, trail, trials }) => (
        <>
          <p>
            {conclusion ? (
              <>
                <Link to="/rules/$name" params={{ name: conclusion.rules }} search={{ tree: treeKey(conclusion.type, conclusion.task), rule: conclusion.rule ?? undefined }}>
                  {ruleWords(conclusion)}
                </Link>{" "}
                would do <strong>{conclusion.exlet || "nothing"}</strong>.
              </>
            ) : (
              `Nothing: of ${plural(trail.length, "rule")} that were asked, none holds.`
            )}
          </p>
          {trials.map((each) => (
            <p key={`${each.rules}/${each.rule}`} className="muted">
              {ruleWords(each, "Rule")}, on trial, would do {each.exlet}.
            </p>
          ))}
        </>
      )}
    </Loaded>
  );
}
