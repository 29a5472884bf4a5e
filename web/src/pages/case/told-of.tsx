import { Link } from "@tanstack/react-router";
import { number } from "@/components/format";
import type { DecisionView } from "@/components/recovery/queries";
import { Time } from "@/components/time";

/** What waits in a case that people were only told of. */
export function ToldOf({ repairs }: { repairs: readonly DecisionView[] }) {
  const told = repairs.filter((each) => each.result === "told");
  const [newest] = told;
  if (!newest) return null;
  return (
    <div className="row wrap" role="note" aria-label="What people were told">
      <span>
        Administrators were told of{" "}
        {newest.item ? <Link from="/cases/$case" to="." search={(before) => ({ ...before, node: undefined, item: newest.item ?? undefined })}>{newest.item}</Link> : "it"}
        {told.length > 1 && ` and ${number(told.length - 1)} more`} <Time at={newest.at} />, by <strong>{newest.exlet}</strong>; nothing else was done.
      </span>
      <Link to="/administration" search={{ view: "alerts" }}>Alerts</Link>
    </div>
  );
}
