/** The server's own reason for something's state: a sentence, then the facts behind it. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { whyQuery } from "@/api/queries";
import { stateOf } from "@/api/states";
import { ActionRow, Sentence } from "./action-buttons";
import { actionFor, commandsIn, withoutCommands } from "./commands";
import { ErrorState, Loading } from "./states-of-page";
import { StateIcon } from "./state-badge";
import { Time } from "./time";

export function Why({ subject, facts = 6 }: { subject: string; facts?: number }) {
  const query = useQuery(whyQuery(subject));
  const [all, setAll] = useState(false);
  if (query.isError) return <ErrorState error={query.error} compact />;
  if (!query.data) return <Loading lines={2} label="Why" />;
  const why = query.data;
  const about = { subject, group: why.repairs?.find((each) => each.group)?.group };
  const isRetried = why.until > 0;
  const shown = all ? why.facts : why.facts.slice(0, facts);
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
      {shown.length > 0 && (
        <ul className="why-facts">
          {shown.map((fact, at) => (
            <li key={at}>
              <Sentence text={fact} about={about} />
            </li>
          ))}
          {why.facts.length > facts && (
            <li>
              <button type="button" className="link-button" aria-expanded={all} onClick={() => setAll(!all)}>
                {all ? "show less" : `and ${why.facts.length - shown.length} more`}
              </button>
            </li>
          )}
        </ul>
      )}
      {why.output.length > 0 && <pre className="why-output">{why.output.join("\n")}</pre>}
    </section>
  );
}
