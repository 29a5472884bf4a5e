import { Link } from "@tanstack/react-router";
import { Fragment, useState } from "react";
import { useMay } from "@/api/session";
import { number } from "@/components/format";
import { itemText } from "@/components/item-text";
import { ItemLink } from "@/components/named-items";
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
  const [all, setAll] = useState(false);
  const told = repairs.filter((each) => each.result === "told");
  const [newest] = told;
  if (!newest) return null;
  const shown = all ? told : [newest];
  return (
    <div className="row wrap" role="note" aria-label="What people were told">
      <span>
        Administrators were told of{" "}
        {shown.map((each, at) => (
          <Fragment key={each.id}>
            {at > 0 && ", "}
            {each.item ? <ItemLink of={each.case} item={each.item}>{itemText({ item: each.item, element: each.element })}</ItemLink> : "it"}
          </Fragment>
        ))}
        {told.length > shown.length && (
          <>
            {" "}
            <button type="button" className="link-button" aria-expanded={false} onClick={() => setAll(true)}>and {number(told.length - 1)} more</button>
          </>
        )} <Time at={newest.at} />, by <strong>{newest.exlet}</strong>; nothing else was done. What they were told stands among the <Messages />.
      </span>
    </div>
  );
}
