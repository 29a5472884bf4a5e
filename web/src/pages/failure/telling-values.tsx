/** Values of the contexts of a group: first what tells it from other failures, the most telling first; the rest is folded. */
import { Link } from "@tanstack/react-router";
import { Fold } from "@/components/fold";
import { number, plural } from "@/components/format";
import type { ValueCount } from "@/components/recovery/queries";
import { kindOf, NOT_TOLD, telling } from "@/components/recovery/telling";
import { shortValue } from "@/components/recovery/values";

interface RowsProps {
  rows: readonly ValueCount[];
  group: string;
  mayTeach: boolean;
}

export function TellingValues({ values, group, mayTeach }: { values: readonly ValueCount[]; group: string; mayTeach: boolean }) {
  const useful = values.filter((each) => each.conditions.length > 0 && !NOT_TOLD.test(each.path));
  const of = (kind: ReturnType<typeof kindOf>) => useful.filter((each) => kindOf(each.path, each) === kind);
  const [tells, same, varies] = [of("tells").toSorted((one, other) => telling(other) - telling(one)), of("same"), of("varies")];
  const { of_here: cases = 0, of_elsewhere: others = 0 } = useful[0] ?? {};
  const note = !others ? "Nothing else has failed in this way yet, so nothing tells these apart. This is what the failure says." : tells.length ? "" : "Nothing that is known tells these cases from others.";
  return (
    <>
      {note && <p className="panel-note muted">{note}</p>}
      {tells.length > 0 && <Rows rows={tells} group={group} mayTeach={mayTeach} counted={others > 0} label="What tells these cases apart" />}
      {same.length > 0 && (
        <Fold title={cases === 1 ? `Also known of this case: ${plural(same.length, "value")}` : `Also the same in all ${number(cases)}: ${plural(same.length, "value")}`}>
          <Rows rows={same} group={group} mayTeach={mayTeach} counted={false} label="Also the same" />
        </Fold>
      )}
      {varies.length > 0 && (
        <Fold title={`Differs among them: ${plural(varies.length, "value")}`}>
          <Rows rows={varies} group={group} mayTeach={mayTeach} counted label="Differs among them" />
        </Fold>
      )}
    </>
  );
}

function Rows({ rows, group, mayTeach, counted, label }: RowsProps & { counted: boolean; label: string }) {
  return (
    <table className="plain-table" aria-label={label}>
      <thead className={counted ? undefined : "visually-hidden"}>
        <tr>
          <th>Value</th>
          {counted && <th>Here</th>}
          {counted && <th>Elsewhere</th>}
        </tr>
      </thead>
      <tbody>
        {rows.map((each, at) => (
          <tr key={`${each.path}-${at}`}>
            <td>
              {mayTeach ? (
                <Link to="/failures/$group/teach" params={{ group }} search={{ term: each.conditions[0] }} className="value-pick" title={`Teach: when ${each.conditions[0]}`}>
                  <ValueText value={each} />
                </Link>
              ) : (
                <ValueText value={each} />
              )}
            </td>
            {counted && <td>{each.here === each.of_here ? <span className="muted">all</span> : <Share count={each.here} of={each.of_here} tone="here" />}</td>}
            {counted && <td>{each.elsewhere ? <Share count={each.elsewhere} of={each.of_elsewhere} tone="elsewhere" /> : <span className="muted">{each.of_elsewhere ? "never" : "nothing failed"}</span>}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function ValueText({ value }: { value: ValueCount }) {
  return (
    <>
      <code className="value-path">{value.path}</code> <code className="value-text">{shortValue(value.value, 60)}</code>
    </>
  );
}

function Share({ count, of, tone }: { count: number; of: number; tone: "here" | "elsewhere" }) {
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
