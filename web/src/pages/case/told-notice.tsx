import { Link } from "@tanstack/react-router";
import { useMay } from "@/api/session";
import { number } from "@/components/format";
import type { DecisionView } from "@/components/recovery/queries";
import { Time } from "@/components/time";

/** Where people see what an exlet has told them; a link for who may look there. */
function Messages() {
  return useMay("alerts") ? <Link to="/administration" search={{ view: "alerts", messages: true }}>messages</Link> : <>messages</>;
}

/** Beside an exlet that has only told. */
export function WhereTold() {
  return (
    <p className="muted">
      What was told stands among the <Messages />. A job that no pilot can take is an alert as well, on Home too, for as long as it waits.
    </p>
  );
}

/** What waits in a case that people were only told of. */
export function ToldNotice({ repairs }: { repairs: readonly DecisionView[] }) {
  const told = repairs.filter((each) => each.result === "told");
  const [newest] = told;
  if (!newest) return null;
  return (
    <div className="row wrap" role="note" aria-label="What people were told">
      <span>
        Administrators were told of{" "}
        {newest.item ? <Link from="/cases/$case" to="." search={(before) => ({ ...before, node: undefined, item: newest.item ?? undefined })}>{newest.item}</Link> : "it"}
        {told.length > 1 && ` and ${number(told.length - 1)} more`} <Time at={newest.at} />, by <strong>{newest.exlet}</strong>; nothing else was done. What they were told stands among the <Messages />.
      </span>
    </div>
  );
}
