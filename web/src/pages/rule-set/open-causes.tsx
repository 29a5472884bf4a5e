/** After a rule was put in force: the causes whose failures wait or were left, where it can be applied to them. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { plural } from "@/components/format";
import { CauseText } from "@/components/recovery/message";
import { failuresQuery } from "@/components/recovery/queries";

const SHOWN = 5;

export function OpenCauses({ flow }: { flow: string }) {
  const groups = useQuery(failuresQuery(flow === "*" ? {} : { flow }));
  const open = (groups.data ?? []).filter((each) => each.waiting + each.unhandled > 0);
  if (!open.length) return null;
  return (
    <section className="notice" aria-label="Apply it to what waits or has failed">
      <p>It decides from now on. What waits or has failed already is not touched; apply the rules to it on the page of its cause:</p>
      <ul>
        {open.slice(0, SHOWN).map((each) => (
          <li key={each.id}>
            <Link to="/failures/$group" params={{ group: each.id }}><CauseText text={each.message} /></Link> <span className="muted">{plural(Math.max(each.waiting, each.unhandled), "failure")}</span>
          </li>
        ))}
      </ul>
      {open.length > SHOWN && <Link to="/failures" search={flow === "*" ? {} : { flow }}>All causes</Link>}
    </section>
  );
}
