/** When a schedule with times is due: a rhythm to choose, the expression that it is, and the time zone. */
import { zone } from "@/components/format";
import { SelectField, TextField } from "@/components/form-fields";
import { cronOf, otherRhythm, RHYTHM_WORDS, rhythmOf, WEEKDAYS, type Rhythm, type RhythmKind } from "./rhythms";

interface Props {
  cron: string;
  onCron: (cron: string) => void;
  problem: string | undefined;
}

export function RhythmFields({ cron, onCron, problem }: Props) {
  const rhythm = rhythmOf(cron);
  const change = (part: Partial<Rhythm>) => rhythm && onCron(cronOf({ ...rhythm, ...part }));
  return (
    <>
      <div className="two-fields">
        <SelectField<RhythmKind | "own"> label="How often" value={rhythm?.kind ?? "own"} onChange={(kind) => kind !== "own" && onCron(otherRhythm(cron, kind))} choices={[...RHYTHM_WORDS, ...(rhythm ? [] : [["own", "As the expression says"] as const])]} />
        {rhythm?.kind === "week" && <SelectField label="On" value={String(rhythm.weekday)} onChange={(day) => change({ weekday: Number(day) })} choices={[1, 2, 3, 4, 5, 6, 0].map((day) => [String(day), WEEKDAYS[day] ?? ""] as const)} />}
        {rhythm?.kind === "month" && <SelectField label="On day" value={String(rhythm.day)} onChange={(day) => change({ day: Number(day) })} choices={Array.from({ length: 31 }, (_, at) => [String(at + 1), String(at + 1)] as const)} hint={rhythm.day > 28 ? `Months without a day ${rhythm.day} are left out.` : undefined} />}
        {rhythm?.kind === "hour" && <SelectField label="Minutes past" value={String(Number(rhythm.time.slice(3)))} onChange={(minute) => change({ time: `00:${minute}` })} choices={Array.from({ length: 60 }, (_, minute) => [String(minute), String(minute).padStart(2, "0")] as const)} />}
        {rhythm && rhythm.kind !== "hour" && <TextField label="At" type="time" value={rhythm.time} onChange={(time) => time && change({ time })} />}
      </div>
      <TextField label="Times" mono value={cron} onChange={onCron} problem={problem} hint="As cron has it: minute, hour, day of the month, month, weekday. Write it yourself for any other rhythm." />
    </>
  );
}

/** All that the browser knows, the viewer's own first, and whatever the schedule has. */
export function zonesToChoose(chosen: string, own = zone()): (readonly [string, string])[] {
  const first = [...new Set([own, "UTC", chosen])].filter(Boolean);
  const others = Intl.supportedValuesOf("timeZone").filter((name) => !first.includes(name));
  return [...first, ...others].map((name) => [name, name === own ? `${name} (yours)` : name] as const);
}

export function ZoneField(props: { value: string; onChange: (zone: string) => void; problem: string | undefined }) {
  return <SelectField label="Time zone" value={props.value} onChange={props.onChange} choices={zonesToChoose(props.value)} problem={props.problem} hint="Whose clock is meant, also when it changes in summer and winter." />;
}
