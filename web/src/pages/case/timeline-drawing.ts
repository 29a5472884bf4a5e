/** Draws the rows of a timeline that are in sight: as many as the window is high, however many there are. */
import { stateOf } from "@/api/states";
import { cssColour } from "@/app/theme";
import { clock, day, duration, ticking } from "@/components/format";
import { elementOf, itemText } from "@/components/item-text";
import { workingSpans, type Folding } from "./idle-time";
import type { TimelineRow } from "./queries";

export const ROW_PX = 18;
export const LABEL_PX = 190;
export const TOP_PX = 22;

export interface Span {
  from: number;
  to: number;
}

interface Scene {
  rows: readonly TimelineRow[];
  span: Span;
  folding: Folding;
  top: number;
  width: number;
  height: number;
}

type Bar = TimelineRow["bars"][number];

function colourName(bar: Bar): string {
  if (bar.kind === "wait") return "--state-waiting";
  if (bar.kind === "stage") return "--state-ready";
  if (bar.kind === "repair") return "--state-repairing";
  if (bar.kind === "hold") return "--state-person";
  return `--state-${stateOf(bar.state)}`;
}

/** From the times of a span to the width that there is, and back, with what is folded. */
export function scaleOf(span: Span, folding: Folding, width: number) {
  const begin = folding.place(span.from);
  const perMs = (width - LABEL_PX) / Math.max(1, folding.place(span.to) - begin);
  return {
    perMs,
    x: (at: number) => LABEL_PX + (folding.place(at) - begin) * perMs,
    at: (x: number) => folding.time(begin + (x - LABEL_PX) / perMs),
  };
}

const STEPS = [10, 50, 100, 500, 1000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000];

export function drawTimeline(board: HTMLCanvasElement, scene: Scene): void {
  const { rows, span, folding, top, width, height } = scene;
  const ratio = devicePixelRatio || 1;
  if (board.width !== Math.round(width * ratio) || board.height !== Math.round(height * ratio)) {
    board.width = Math.round(width * ratio);
    board.height = Math.round(height * ratio);
    board.style.width = `${width}px`;
    board.style.height = `${height}px`;
    board.style.marginBottom = `${-height}px`;
  }
  const pen = board.getContext("2d");
  if (!pen) return;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const colours = new Map<string, string>();
  const colour = (name: string) => {
    const known = colours.get(name) ?? cssColour(name);
    colours.set(name, known);
    return known;
  };
  pen.fillStyle = colour("--panel");
  pen.fillRect(0, 0, width, height);
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  pen.textBaseline = "middle";
  const { x, perMs } = scaleOf(span, folding, width);
  const idle = folding.stretches.filter((each) => each.to > span.from && each.from < span.to).map((each) => ({ left: Math.max(LABEL_PX, x(each.from)), right: Math.min(width, x(each.to)), text: idleText(each) }));
  pen.fillStyle = colour("--raised");
  for (const each of idle) pen.fillRect(each.left, TOP_PX, each.right - each.left, height - TOP_PX);
  const ticks = ticksOf(span, folding, perMs);
  pen.strokeStyle = colour("--line");
  pen.beginPath();
  for (const tick of ticks) {
    pen.moveTo(Math.round(x(tick.at)) + 0.5, TOP_PX);
    pen.lineTo(Math.round(x(tick.at)) + 0.5, height);
  }
  pen.stroke();

  const first = Math.max(0, Math.floor((top - TOP_PX) / ROW_PX));
  const last = Math.min(rows.length - 1, Math.ceil((top + height) / ROW_PX));
  for (let index = first; index <= last; index += 1) {
    const row = rows[index] as TimelineRow;
    const y = TOP_PX + index * ROW_PX - top;
    for (const bar of row.bars) {
      const left = Math.max(LABEL_PX, x(bar.start));
      const right = Math.min(width, x(bar.end));
      if (right < LABEL_PX || left > width) continue;
      const thin = bar.kind === "wait" || bar.kind === "hold";
      pen.fillStyle = colour(colourName(bar));
      pen.globalAlpha = bar.kind === "wait" ? 0.55 : 1;
      pen.fillRect(left, y + (thin ? 7 : 3), Math.max(1.5, right - left), thin ? 4 : ROW_PX - 6);
      pen.globalAlpha = 1;
    }
    pen.fillStyle = colour("--panel");
    pen.fillRect(0, y, LABEL_PX - 6, ROW_PX);
    pen.fillStyle = colour(`--state-${stateOf(row.state)}`);
    pen.beginPath();
    pen.arc(14, y + ROW_PX / 2, 3.5, 0, Math.PI * 2);
    pen.fill();
    pen.fillStyle = colour("--text");
    pen.fillText(clipped(`${row.item} ${elementOf(row)}`.trimEnd()), 24, y + ROW_PX / 2);
  }

  pen.fillStyle = colour("--panel");
  pen.fillRect(0, 0, width, TOP_PX);
  pen.fillStyle = colour("--muted");
  let free = LABEL_PX;
  const labels = [...idle.map((each) => ({ left: each.left + (each.right - each.left - pen.measureText(each.text).width) / 2, text: each.text, most: each.right - each.left })), ...ticks.map((tick) => ({ left: x(tick.at) + 3, text: tick.text, most: Infinity }))];
  const marks = idle.map((each) => each.left);
  for (const label of labels.toSorted((one, other) => one.left - other.left)) {
    const wide = pen.measureText(label.text).width;
    const meets = label.most === Infinity && marks.some((mark) => mark > label.left && mark < label.left + wide);
    if (label.left < free || wide > label.most || meets) continue;
    pen.fillText(label.text, label.left, TOP_PX / 2);
    free = label.left + wide + 2;
  }
  pen.fillStyle = colour("--panel");
  pen.fillRect(0, 0, LABEL_PX - 6, TOP_PX);
  pen.strokeStyle = colour("--line-strong");
  pen.beginPath();
  pen.moveTo(0, TOP_PX - 0.5);
  pen.lineTo(width, TOP_PX - 0.5);
  pen.stroke();
}

interface Tick {
  at: number;
  text: string;
}

/** As often as there is room for what they say. Where something runs again after a folded stretch, it is always said when. */
function ticksOf(span: Span, folding: Folding, perMs: number): Tick[] {
  const step = STEPS.find((each) => each * perMs >= 90) ?? 604_800_000;
  const ticks: Tick[] = [];
  for (const part of workingSpans(folding, span)) {
    if (folding.stretches.some((each) => each.to === part.from)) ticks.push({ at: part.from, text: after(part.from, folding) });
    for (let at = Math.ceil(part.from / step) * step; at <= part.to; at += step) if (at !== part.from) ticks.push({ at, text: tickText(at, step) });
  }
  return ticks;
}

/** With the day, if it is another than before the stretch. */
function after(at: number, { stretches }: Folding): string {
  const before = stretches.find((each) => each.to === at)?.from ?? at;
  return day(before) === day(at) ? clock(at) : `${day(at)}, ${clock(at)}`;
}

/** Steps below a second need more than the clock says, and those of days the date. */
function tickText(at: number, step: number): string {
  if (step < 1000) return `${clock(at)}.${String(Math.floor(at % 1000)).padStart(3, "0")}`;
  return step >= 86_400_000 ? day(at) : clock(at);
}

/** In the largest unit: `idle 9 h`. */
export function idleText({ from, to }: Span): string {
  return `idle ${duration(to - from).split(" ").slice(0, 2).join(" ")}`;
}

function clipped(text: string): string {
  return text.length > 25 ? `${text.slice(0, 24)}…` : text;
}

/** What is under the pointer, in words. */
export function barAt(rows: readonly TimelineRow[], { span, folding, width }: Pick<Scene, "span" | "folding" | "width">, x: number, y: number): string {
  const row = rows[Math.floor((y - TOP_PX) / ROW_PX)];
  if (!row) return "";
  const scale = scaleOf(span, folding, width);
  const at = scale.at(x);
  const [least, most] = [scale.at(x - 3), scale.at(x + 3)];
  const bar = x < LABEL_PX ? undefined : row.bars.findLast((each) => most >= each.start && least <= each.end);
  const idle = x < LABEL_PX ? undefined : folding.stretches.find((each) => at > each.from && at < each.to);
  const name = itemText(row);
  if (idle && (!bar || bar.start > idle.from || bar.end < idle.to)) return `Nothing ran for ${duration(idle.to - idle.from)}, from ${clock(idle.from)} to ${clock(idle.to)}`;
  if (!bar) return `${name}: ${row.state}`;
  const what = { wait: "waited", stage: "staged files", run: "ran", repair: "was under repair", hold: "waited for a person" }[bar.kind];
  const open = bar.state === "running" || bar.state === "waiting";
  const took = open ? ticking(Math.max(bar.end, Date.now()) - bar.start) : duration(bar.ran_ms || bar.end - bar.start);
  const parts = [`${name} ${what} ${took}`, `from ${clock(bar.start)}`, bar.attempt > 1 && `attempt ${bar.attempt}`, bar.pilot && `on ${bar.pilot}`, bar.note, bar.kind === "run" && bar.state];
  return parts.filter(Boolean).join(" · ");
}
