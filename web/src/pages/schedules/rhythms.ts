/** The rhythms that people mean most often, and the cron expressions that they are. The expression is what counts: a rhythm is
 * read from it, and changing one writes it. */

export type RhythmKind = "hour" | "day" | "weekdays" | "week" | "month";

export interface Rhythm {
  kind: RhythmKind;
  /** `HH:MM`; of every hour only the minutes count. */
  time: string;
  /** 0 is Sunday, as in cron. */
  weekday: number;
  day: number;
}

export const RHYTHM_WORDS: readonly (readonly [RhythmKind, string])[] = [
  ["hour", "Every hour"],
  ["day", "Each day"],
  ["weekdays", "Weekdays, Monday to Friday"],
  ["week", "Each week"],
  ["month", "Each month"],
];

export const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"] as const;
const SHORT = WEEKDAYS.map((day) => day.slice(0, 3).toLowerCase());
const PLAIN: Rhythm = { kind: "day", time: "03:00", weekday: 1, day: 1 };

function whole(text: string | undefined, last: number): number | null {
  return text !== undefined && /^\d{1,2}$/.test(text) && Number(text) <= last ? Number(text) : null;
}

function weekdayOf(text: string): number | null {
  const number = whole(text, 7);
  if (number !== null) return number % 7;
  const named = SHORT.indexOf(text.toLowerCase());
  return named < 0 ? null : named;
}

/** The rhythm that an expression is, if it is one of them. */
export function rhythmOf(cron: string): Rhythm | null {
  const [minutes, hours, day, month, weekday, ...more] = cron.trim().split(/\s+/);
  const minute = whole(minutes, 59);
  if (minute === null || month !== "*" || weekday === undefined || day === undefined || more.length) return null;
  if (hours === "*") return day === "*" && weekday === "*" ? { ...PLAIN, kind: "hour", time: clockText(0, minute) } : null;
  const hour = whole(hours, 23);
  if (hour === null) return null;
  const at = { ...PLAIN, time: clockText(hour, minute) };
  if (day === "*") {
    if (weekday === "*") return { ...at, kind: "day" };
    if (/^(mon-fri|1-5)$/i.test(weekday)) return { ...at, kind: "weekdays" };
    const named = weekdayOf(weekday);
    return named === null ? null : { ...at, kind: "week", weekday: named };
  }
  const ofMonth = whole(day, 31);
  return ofMonth && weekday === "*" ? { ...at, kind: "month", day: ofMonth } : null;
}

export function cronOf({ kind, time, weekday, day }: Rhythm): string {
  const [hour = 0, minute = 0] = time.split(":").map(Number);
  return {
    hour: `${minute} * * * *`,
    day: `${minute} ${hour} * * *`,
    weekdays: `${minute} ${hour} * * mon-fri`,
    week: `${minute} ${hour} * * ${SHORT[weekday]}`,
    month: `${minute} ${hour} ${day} * *`,
  }[kind];
}

/** Another rhythm at the same time of the day, as far as the expression before said one. */
export function otherRhythm(cron: string, kind: RhythmKind): string {
  return cronOf({ ...(rhythmOf(cron) ?? PLAIN), kind });
}

/** The rhythm in words: `each day at 02:15`. Nothing where it is none of them. */
export function rhythmText(cron: string): string {
  const rhythm = rhythmOf(cron);
  if (!rhythm) return "";
  const { time, weekday, day } = rhythm;
  return {
    hour: `each hour, ${Number(time.slice(3))} minutes past`,
    day: `each day at ${time}`,
    weekdays: `Monday to Friday at ${time}`,
    week: `each ${WEEKDAYS[weekday]} at ${time}`,
    month: `on day ${day} of each month at ${time}`,
  }[rhythm.kind];
}

function clockText(hour: number, minute: number): string {
  return [hour, minute].map((part) => String(part).padStart(2, "0")).join(":");
}
