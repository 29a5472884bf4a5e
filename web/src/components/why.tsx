/** The server's own reason for something's state: a sentence, then the facts behind it. */
import { useQuery } from "@tanstack/react-query";
import { useLayoutEffect, useRef } from "react";
import { whyQuery } from "@/api/queries";
import { stateOf } from "@/api/states";
import { ActionRow, Sentence } from "./action-buttons";
import { FirstRows } from "./and-more";
import { actionFor, caseOf, commandsIn, withoutCommands } from "./commands";
import { ErrorState, Loading } from "./states-of-page";
import { StateIcon } from "./state-badge";
import { Time } from "./time";

/** `offered` is the act that the page has as a button already. */
export function Why({ subject, facts = 6, offered }: { subject: string; facts?: number; offered?: string }) {
  const query = useQuery(whyQuery(subject));
  if (query.isError) return <ErrorState error={query.error} compact />;
  if (!query.data) return <Loading lines={2} label="Why" />;
  const why = query.data;
  const failure = why.repairs?.find((each) => each.state === "waiting" && each.group) ?? why.repairs?.find((each) => each.group);
  const about = { subject, group: failure?.group, decision: failure?.id, held: why.state === "held", offered, named: { case: caseOf(subject), items: why.items ?? {} } };
  const isRetried = why.until > 0;
  return (
    <section className="why" aria-label={`Why ${subject}`}>
      <p className="why-sentence">
        <StateIcon state={stateOf(why.state)} size={14} />
        <span><Sentence text={isRetried ? withoutCommands(why.sentence) : why.sentence} about={about} /></span>
      </p>
      {isRetried && (
        <>
          <p className="muted">
            It waits for its next try <Time at={why.until} />. Nobody has to do anything.
          </p>
          <ActionRow label="What can be done about the wait" actions={commandsIn(why.sentence).flatMap((each) => actionFor(each, about) ?? [])} />
        </>
      )}
      {why.facts.length > 0 && (
        <ul className="why-facts">
          <FirstRows rows={why.facts} shown={facts}>
            {(fact, at) => (
              <li key={at}>
                <Sentence text={fact} about={about} />
              </li>
            )}
          </FirstRows>
        </ul>
      )}
      {why.output.length > 0 && <Output lines={why.output} subject={subject} />}
    </section>
  );
}

/** The last that it printed. Where that is more than there is room for, its end is shown: most often that is the error. */
function Output({ lines, subject }: { lines: readonly string[]; subject: string }) {
  const text = lines.join("\n");
  const place = useRef<HTMLPreElement>(null);
  useLayoutEffect(() => {
    if (place.current) place.current.scrollTop = place.current.scrollHeight;
  }, [text]);
  return <pre className="why-output" ref={place} tabIndex={0} role="region" aria-label={`End of the log of ${subject}`}>{text}</pre>;
}
