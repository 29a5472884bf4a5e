/** Values of the contexts of a group: first those that distinguish it from other failures, the best of them first; the rest is folded. */
import { Link } from "@tanstack/react-router";
import { FoldedSection } from "@/components/folded-section";
import { number, plural } from "@/components/format";
import type { ValueCount } from "@/components/recovery/queries";
import { distinction, isShownFirst, lookedForFirst, NO_CONDITIONS_OF, valueKindOf, type ValueKind } from "@/components/recovery/distinguishing-values";
import { shortValue } from "@/components/recovery/values";

interface RowsProps {
  rows: readonly ValueCount[];
  group: string;
  mayTeach: boolean;
}

export function DistinguishingValues({ values, group, mayTeach }: { values: readonly ValueCount[]; group: string; mayTeach: boolean }) {
  const useful = values.filter((each) => each.value !== null && each.conditions.length > 0 && !NO_CONDITIONS_OF.test(each.path));
  const of = (kind: ValueKind) => useful.filter((each) => valueKindOf(each.path, each) === kind);
  const order = (one: ValueCount, other: ValueCount) => lookedForFirst(one.path) - lookedForFirst(other.path) || distinction(other) - distinction(one);
  const [distinguishing, same, varies] = [of("distinguishing").toSorted(order), of("same"), of("varies")];
  const first = distinguishing.filter(isShownFirst);
  const more = distinguishing.filter((each) => !isShownFirst(each));
  const { of_here: cases = 0, of_elsewhere: others = 0 } = useful[0] ?? {};
  const note = !others ? "Nothing else has failed in this way yet, so nothing tells these apart. This is what the failure says." : distinguishing.length ? "" : "Nothing that is known tells these cases from others.";
  return (
    <>
      {note && <p className="panel-note muted">{note}</p>}
      {others > 0 && first.length > 0 && <p className="panel-note muted">Compared with {plural(others, "failure")} of other causes. Jobs that ended well are not compared.</p>}
      {first.length > 0 && <Rows rows={first} group={group} mayTeach={mayTeach} counted={others > 0} label="What tells these cases apart" />}
      {more.length > 0 && (
        <FoldedSection title={`More: ${plural(more.length, "value")}`}>
          <Rows rows={more} group={group} mayTeach={mayTeach} counted={false} label="More values" />
        </FoldedSection>
      )}
      {same.length > 0 && (
        <FoldedSection title={cases === 1 ? `Also known of this case: ${plural(same.length, "value")}` : `Also the same in all ${number(cases)}: ${plural(same.length, "value")}`}>
          <Rows rows={same} group={group} mayTeach={mayTeach} counted={false} label="Also the same" />
        </FoldedSection>
      )}
      {varies.length > 0 && (
        <FoldedSection title={`Differs among them: ${plural(varies.length, "value")}`}>
          <Rows rows={varies} group={group} mayTeach={mayTeach} counted label="Differs among them" />
        </FoldedSection>
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
          {counted && <th>In other failures</th>}
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
    <span className="value-share">
      <span className="value-bar" aria-hidden="true">
        <span style={{ width: `${Math.round((100 * count) / of)}%` }} className={`value-${tone}`} />
      </span>
      <span className="value-count">
        {number(count)} of {number(of)}
      </span>
    </span>
  );
}
