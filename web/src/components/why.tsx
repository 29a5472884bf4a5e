/** The server's own reason for something's state: a sentence, then the facts behind it. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { whyQuery } from "@/api/queries";
import { stateOf } from "@/api/states";
import { ErrorState, Loading } from "./states-of-page";
import { StateIcon } from "./state-badge";
import { Time } from "./time";

export function Why({ subject, facts = 6 }: { subject: string; facts?: number }) {
  const query = useQuery(whyQuery(subject));
  if (query.isError) return <ErrorState error={query.error} compact />;
  if (!query.data) return <Loading lines={2} label="Why" />;
  const why = query.data;
  const shown = why.facts.slice(0, facts);
  return (
    <section className="why" aria-label={`Why ${subject}`}>
      <p className="why-sentence">
        <StateIcon state={stateOf(why.state)} size={14} />
        <span>{withCode(why.sentence)}</span>
      </p>
      {why.until > 0 && (
        <p className="muted">
          It is tried again <Time at={why.until} />.
        </p>
      )}
      {shown.length > 0 && (
        <ul className="why-facts">
          {shown.map((fact, at) => (
            <li key={at}>{withCode(fact)}</li>
          ))}
          {why.facts.length > shown.length && <li className="muted">and {why.facts.length - shown.length} more</li>}
        </ul>
      )}
      {why.output.length > 0 && <pre className="why-output">{why.output.join("\n")}</pre>}
    </section>
  );
}

/** Commands stand between backticks in the server's sentences; one that shows a page of the app leads there. */
function withCode(text: string) {
  return text.split("`").map((part, at) => (at % 2 ? <Command key={at} text={part} /> : part));
}

function Command({ text }: { text: string }) {
  const group = /^mendflow failures show (\w+)$/.exec(text)?.[1];
  if (!group) return <code>{text}</code>;
  return (
    <Link to="/failures/$group" params={{ group }}>
      the page of this cause
    </Link>
  );
}
