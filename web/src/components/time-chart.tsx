/** Values over time, by uPlot: lines, or bars for counts. Hovering shows the values of that moment. */
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { cssColour, useTheme } from "@/app/theme";

export interface Series {
  label: string;
  values: readonly (number | null)[];
  /** A custom property of the style sheets, such as `--state-failed`. */
  colour: string;
}

export default function TimeChart(props: {
  /** Milliseconds since 1970. */
  times: readonly number[];
  series: readonly Series[];
  height?: number;
  bars?: boolean;
  label: string;
  onSelect?: (from: number, to: number) => void;
}) {
  const { times, series, height = 160, bars, onSelect } = props;
  const place = useRef<HTMLDivElement>(null);
  const { dark } = useTheme();
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const axis = { stroke: cssColour("--muted"), grid: { stroke: cssColour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const chart = new uPlot(
      {
        width: element.clientWidth || 400,
        height,
        padding: [8, 8, 0, 0],
        cursor: { drag: { x: Boolean(onSelect), y: false } },
        legend: { live: true },
        axes: [axis, { ...axis, size: 44 }],
        scales: { y: { range: (_chart, _least, most) => [0, Math.max(1, most * 1.1)] } },
        series: [
          {},
          ...series.map((each) => ({
            label: each.label,
            stroke: cssColour(each.colour),
            fill: bars ? cssColour(each.colour) : undefined,
            width: bars ? 0 : 1.5,
            points: { show: false },
            paths: bars ? uPlot.paths.bars?.({ size: [0.8, 40] }) : undefined,
          })),
        ],
        hooks: {
          setSelect: [
            (plot) => {
              if (onSelect && plot.select.width > 2) {
                const from = plot.posToVal(plot.select.left, "x");
                const to = plot.posToVal(plot.select.left + plot.select.width, "x");
                onSelect(from * 1000, to * 1000);
              }
            },
          ],
        },
      },
      [times.map((at) => at / 1000), ...series.map((each) => [...each.values])] as uPlot.AlignedData,
      element,
    );
    const watch = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      chart.destroy();
    };
  }, [times, series, height, bars, onSelect, dark]);
  return <div className="time-chart" ref={place} role="img" aria-label={props.label} />;
}
