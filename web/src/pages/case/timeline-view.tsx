import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTheme } from "@/app/theme";
import { usePhone } from "@/app/screen-widths";
import { clock, duration, number, plural } from "@/components/format";
import { CheckField } from "@/components/form-fields";
import { Icon } from "@/components/icon";
import { EmptyState, ErrorState, Loading } from "@/components/states-of-page";
import { folding, idleMs, idleStretches, isMostlyIdle, UNFOLDED, type Folding } from "./idle-time";
import type { TimelineRow } from "./queries";
import { useTimeline } from "./timeline-rows";
import { barAt, drawTimeline, LABEL_PX, ROW_PX, TOP_PX, type Span } from "./timeline-drawing";

const route = getRouteApi("/cases/$case");

export default function TimelineView({ id }: { id: string }) {
  const { from, to, name, idle } = route.useSearch();
  const navigate = useNavigate({ from: "/cases/$case" });
  const { loaded, error } = useTimeline(id, name);
  const [span, setSpan] = useState<Span | null>(from !== undefined && to !== undefined ? { from, to } : null);
  const whole = useMemo<Span>(() => ({ from: loaded?.start ?? 0, to: Math.max((loaded?.start ?? 0) + 1000, loaded?.end ?? 0) }), [loaded?.start, loaded?.end]);
  const shown = span ?? whole;
  const rows = loaded?.rows;
  const stretches = useMemo(() => (rows ? idleStretches(rows, whole) : []), [rows, whole]);
  const folds = stretches.length > 0 && (idle ? idle === "folded" : isMostlyIdle(stretches, whole));
  const fold = useMemo(() => (folds ? folding(stretches, whole) : UNFOLDED), [folds, stretches, whole]);
  const keep = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const zoom = (next: Span | null) => {
    setSpan(next);
    clearTimeout(keep.current);
    keep.current = setTimeout(() => void navigate({ search: (before) => ({ ...before, from: next ? Math.round(next.from) : undefined, to: next ? Math.round(next.to) : undefined }), replace: true }), 400);
  };
  // Whoever leaves the page is not led back to it.
  useEffect(() => () => clearTimeout(keep.current), []);
  if (error !== null && !loaded) return <ErrorState error={error} />;
  if (!loaded) return <Loading lines={6} />;
  if (!loaded.rows.length) return <EmptyState title="Nothing has begun yet" icon="schedules">Items are drawn here as soon as they wait or run.</EmptyState>;
  const scaled = (factor: number) => zoom(zoomed(shown, fold, 0.5, factor));
  return (
    <div className="timeline">
      <div className="toolbar">
        <span className="muted">
          {plural(loaded.total, "item")}
          {!loaded.whole && `, ${number(loaded.rows.length)} read`} · shown from {clock(shown.from)} to {clock(shown.to)}
        </span>
        {stretches.length > 0 && (
          <span title="Stretches in which nothing ran are drawn as short as each other, with how long they were">
            <CheckField label={`fold idle time, ${duration(idleMs(stretches))}`} checked={folds} onChange={(checked) => void navigate({ search: (before) => ({ ...before, idle: checked ? ("folded" as const) : ("shown" as const) }), replace: true })} />
          </span>
        )}
        <span className="spread" />
        <span className="timeline-key"><i className="key-wait" /> waits <i className="key-stage" /> staging <i className="key-live" /> runs <i className="key-run" /> done <i className="key-fail" /> failed <i className="key-repair" /> repair <i className="key-person" /> for a person</span>
        <span className="timeline-zoom">
          <button type="button" className="icon-button" aria-label="Zoom in" onClick={() => scaled(0.5)}>
            <Icon name="plus" size={14} />
          </button>
          <button type="button" className="icon-button" aria-label="Zoom out" onClick={() => scaled(2)}>
            <Icon name="minus" size={14} />
          </button>
          <button type="button" className="icon-button" aria-label="Show all" onClick={() => zoom(null)}>
            <Icon name="fit" size={14} />
          </button>
        </span>
      </div>
      <Canvas rows={loaded.rows} span={shown} folding={fold} onSpan={zoom} label={`Timeline of ${id}: ${plural(loaded.total, "item")}. The tab Items has them as a table.`} onOpen={(item) => void navigate({ search: (before) => ({ ...before, item }) })} />
    </div>
  );
}

/** Nearer or further, with the time at this part of the width where it is. */
function zoomed(span: Span, { place, time }: Folding, part: number, factor: number): Span {
  const [from, to] = [place(span.from), place(span.to)];
  const at = from + part * (to - from);
  return { from: time(at - (at - from) * factor), to: time(at + (to - at) * factor) };
}

/** Further along, by a part of the width. */
function moved(span: Span, { place, time }: Folding, part: number): Span {
  const [from, to] = [place(span.from), place(span.to)];
  return { from: time(from + part * (to - from)), to: time(to + part * (to - from)) };
}

function Canvas(props: { rows: TimelineRow[]; span: Span; folding: Folding; label: string; onSpan: (span: Span) => void; onOpen: (item: string) => void }) {
  const { rows, span, folding } = props;
  const onPhone = usePhone();
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef(props);
  const [hovered, setHovered] = useState("");
  const { dark } = useTheme();
  useEffect(() => {
    latest.current = props;
  });
  useEffect(() => {
    const box = scroller.current;
    const board = canvas.current;
    if (!box || !board) return;
    let frame = 0;
    const draw = () => {
      frame = 0;
      drawTimeline(board, { rows: latest.current.rows, span: latest.current.span, folding: latest.current.folding, top: box.scrollTop, width: box.clientWidth, height: box.clientHeight });
    };
    const soon = () => {
      frame ||= requestAnimationFrame(draw);
    };
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      const { span, folding, onSpan } = latest.current;
      const wide = Math.max(1, box.clientWidth - LABEL_PX);
      if (event.shiftKey) onSpan(moved(span, folding, (event.deltaY || event.deltaX) / wide));
      else onSpan(zoomed(span, folding, Math.max(0, (event.offsetX - LABEL_PX) / wide), Math.exp(event.deltaY * 0.002)));
    };
    let drag: { x: number; span: Span } | null = null;
    const down = (event: PointerEvent) => {
      drag = { x: event.clientX, span: latest.current.span };
      board.setPointerCapture(event.pointerId);
    };
    const move = (event: PointerEvent) => {
      if (drag && Math.abs(event.clientX - drag.x) > 3) {
        latest.current.onSpan(moved(drag.span, latest.current.folding, (drag.x - event.clientX) / Math.max(1, box.clientWidth - LABEL_PX)));
        return;
      }
      setHovered(barAt(latest.current.rows, { ...latest.current, width: box.clientWidth }, event.offsetX, event.offsetY + box.scrollTop));
    };
    const up = (event: PointerEvent) => {
      if (drag && Math.abs(event.clientX - drag.x) <= 3) {
        const row = latest.current.rows[Math.floor((event.offsetY + box.scrollTop - TOP_PX) / ROW_PX)];
        if (row) latest.current.onOpen(row.item);
      }
      drag = null;
    };
    box.addEventListener("scroll", soon, { passive: true });
    box.addEventListener("wheel", wheel, { passive: false });
    board.addEventListener("pointerdown", down);
    board.addEventListener("pointermove", move);
    board.addEventListener("pointerup", up);
    const watch = new ResizeObserver(soon);
    watch.observe(box);
    draw();
    return () => {
      cancelAnimationFrame(frame);
      watch.disconnect();
      box.removeEventListener("scroll", soon);
      box.removeEventListener("wheel", wheel);
      board.removeEventListener("pointerdown", down);
      board.removeEventListener("pointermove", move);
      board.removeEventListener("pointerup", up);
    };
  }, [rows, span, folding, dark]);
  return (
    <>
      <div className="timeline-at muted clip" role="status">
        {hovered || (onPhone ? "The buttons zoom; a tap opens the item." : "Ctrl and the wheel zoom, dragging moves, a click opens the item.")}
      </div>
      <div className="timeline-scroll" ref={scroller} tabIndex={0} role="region" aria-label="Timeline">
        <canvas className="timeline-canvas" ref={canvas} role="img" aria-label={props.label} />
        <div style={{ height: Math.max(0, rows.length * ROW_PX + TOP_PX) }} />
      </div>
    </>
  );
}
