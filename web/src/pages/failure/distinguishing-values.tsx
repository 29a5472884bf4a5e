/** Values of the contexts of a group: first a handful that distinguish it from other failures and from jobs that ended well, the
 * best of them first; the rest is folded. */
import { Link } from "@tanstack/react-router";
import { FoldedSection } from "@/components/folded-section";
import { number, plural } from "@/components/format";
import type { ValueCount } from "@/components/recovery/queries";
import { distinguishing, NO_CONDITIONS_OF, parted, valueKindOf, type ValueKind } from "@/components/recovery/distinguishing-values";
import { shortValue } from "@/components/recovery/values";

interface RowsProps {
  rows: readonly ValueCount[];
  group: string;
  mayTeach: boolean;
}

export function DistinguishingValues({ values, group, mayTeach }: { values: readonly ValueCount[]; group: string; mayTeach: boolean }) {
  const useful = values.filter((each) => each.value !== null && each.conditions.length > 0 && !NO_CONDITIONS_OF.test(each.path));
  const of = (kind: ValueKind) => useful.filter((each) => valueKindOf(each.path, each) === kind);
  const [apart, same, varies] = [distinguishing(values), of("same"), of("varies")];
  const { first, more } = parted(apart);
  const { of_here: cases = 0, of_elsewhere: others = 0 } = useful[0] ?? {};
  const well = Math.max(0, ...useful.map((each) => each.known_succeeded));
  const compared = others + well > 0;
  const note = !compared ? "Nothing else has failed or ended well yet, so nothing tells these apart. This is what the failure says." : apart.length ? "" : "Nothing that is known tells these cases from others.";
  const against = [others > 0 && `${plural(others, "failure")} of other causes`, well > 0 && `${plural(well, "job")} of the same flow that ended well`].filter(Boolean).join(" and ");
  return (
    <>
      {note && <p className="panel-note muted">{note}</p>}
      {compared && first.length > 0 && <p className="panel-note muted">Compared with {against}.{mayTeach && " Choose one to teach a repair for it."}</p>}
      {first.length > 0 && <Rows rows={first} group={group} mayTeach={mayTeach} counted={compared} label="What tells these cases apart" />}
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
          {counted && <th>Other failures</th>}
          {counted && <th>Ended well</th>}
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
            {counted && <td><Elsewhere count={each.elsewhere} of={each.known_elsewhere} /></td>}
            {counted && <td><Elsewhere count={each.succeeded} of={each.known_succeeded} /></td>}
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

/** In how many others; a dash if there is nothing to compare with. */
function Elsewhere({ count, of }: { count: number; of: number }) {
  if (count) return <Share count={count} of={of} tone="elsewhere" />;
  return <span className="muted">{of ? "never" : "–"}</span>;
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
