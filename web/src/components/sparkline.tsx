/** A line without axes, for a table's cell or beside a number. It is small, so it is SVG; large ones are TimeChart. */
import { memo } from "react";

export const Sparkline = memo(function Sparkline(props: {
  values: readonly number[];
  label: string;
  width?: number;
  height?: number;
  tone?: "failed" | "done" | "running" | "person" | "neutral";
}) {
  const { values, width = 96, height = 22 } = props;
  const most = Math.max(1, ...values);
  const step = width / Math.max(1, values.length);
  const bar = Math.max(1, step - 1);
  return (
    <svg className={`sparkline tone-${props.tone ?? "neutral"}`} width={width} height={height} role="img" aria-label={props.label}>
      <title>{props.label}</title>
      <line x1={0} x2={width} y1={height - 0.5} y2={height - 0.5} className="sparkline-base" />
      {values.map((value, at) =>
        value > 0 ? (
          <rect key={at} x={at * step} width={bar} y={height - 1 - Math.max(1.5, (value / most) * (height - 3))} height={Math.max(1.5, (value / most) * (height - 3))} rx={0.75} />
        ) : null,
      )}
    </svg>
  );
});
