/** Values of the contexts of a group, each with how often it occurs here and elsewhere, the most telling first. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { number } from "@/components/format";
import type { ValueCount } from "@/components/recovery/queries";
import { shortValue } from "@/components/recovery/values";

const FIRST = 14;

type Counted = Pick<ValueCount, "here" | "of_here" | "elsewhere" | "of_elsewhere">;

/** How often here, and how often elsewhere. */
export function howOften(count: Counted): string {
  const elsewhere = count.of_elsewhere ? `${number(count.elsewhere)} of ${number(count.of_elsewhere)} elsewhere` : "nothing else has failed";
  return `${number(count.here)} of ${number(count.of_here)} here, ${elsewhere}`;
}

function Share({ count, of, tone }: { count: number; of: number; tone: "here" | "elsewhere" }) {
  if (!of) return <span className="muted">none failed</span>;
  return (
    <span className="telling-share">
      <span className="telling-bar" aria-hidden="true">
        <span style={{ width: `${Math.round((100 * count) / of)}%` }} className={`telling-${tone}`} />
      </span>
      <span className="telling-count">
        {number(count)} of {number(of)}
      </span>
    </span>
  );
}

/** How well a value tells the group apart: 1 if all here have it and none elsewhere. */
export function telling(count: Counted): number {
  return count.here / Math.max(1, count.of_here) - (count.of_elsewhere ? count.elsewhere / count.of_elsewhere : 0);
}

export function TellingValues({ values, group, mayTeach }: { values: readonly ValueCount[]; group: string; mayTeach: boolean }) {
  const [every, setEvery] = useState(false);
  const useful = values.filter((each) => each.conditions.length > 0 && !/^(case\.version|job\.command)$/.test(each.path));
  const rows = every ? useful : useful.filter((each) => telling(each) > 0 && (each.here > 1 || each.of_here === 1)).slice(0, FIRST);
  return (
    <>
      <table className="plain-table">
        <thead>
          <tr>
            <th>Value</th>
            <th>Here</th>
            <th>Elsewhere</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((each, at) => (
            <tr key={`${each.path}-${at}`}>
              <td>
                {mayTeach ? (
                  <Link to="/failures/$group/teach" params={{ group }} search={{ term: each.conditions[0] }} className="value-pick" title={`Teach: when ${each.conditions[0]}`}>
                    <code className="value-path">{each.path}</code> <code className="value-text">{shortValue(each.value, 60)}</code>
                  </Link>
                ) : (
                  <>
                    <code className="value-path">{each.path}</code> <code className="value-text">{shortValue(each.value, 60)}</code>
                  </>
                )}
              </td>
              <td>
                <Share count={each.here} of={each.of_here} tone="here" />
              </td>
              <td>
                <Share count={each.elsewhere} of={each.of_elsewhere} tone="elsewhere" />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {useful.length > rows.length && (
        <button type="button" className="link-button pad" onClick={() => setEvery(true)}>
          all {useful.length} values
        </button>
      )}
    </>
  );
}
