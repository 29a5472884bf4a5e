// @vitest-environment jsdom
import { expect, test } from "vitest";
import { isPlainDrawing } from "@/pages/case/plain-drawing";

const svg = (inside: string) => `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">${inside}</svg>`;
const levels = (part: (at: number) => string) => Array.from({ length: 8 }, (_, at) => part(at)).join("");

test("a plot is drawn, though its letters are used again and again and its lines are clipped", () => {
  const glyphs = Array.from({ length: 500 }, () => '<use xlink:href="#d"/><path clip-path="url(#c)" d="M0 0"/>').join("");
  expect(isPlainDrawing(svg(`<defs><path id="d"/><clipPath id="c"><rect/></clipPath></defs>${glyphs}`))).toBe(true);
});

test("parts that use parts that use parts are counted as often as they are drawn", () => {
  const uses = (at: number) => `<use href="#p${at - 1}"/>`.repeat(10);
  expect(isPlainDrawing(svg(levels((at) => `<g id="p${at}">${at ? uses(at) : "<rect/>"}</g>`)))).toBe(false);
  const filled = (at: number) => `<rect fill="url(#p${at - 1})"/>`.repeat(10);
  expect(isPlainDrawing(svg(levels((at) => `<pattern id="p${at}">${at ? filled(at) : "<rect/>"}</pattern>`)))).toBe(false);
});

test("what refers to itself, to another drawing, or by a style sheet, is not drawn", () => {
  expect(isPlainDrawing(svg('<g id="a"><use href="#a"/></g>'))).toBe(false);
  expect(isPlainDrawing(svg('<image href="data:image/svg+xml,x"/>'))).toBe(false);
  expect(isPlainDrawing(svg("<style>rect { fill: url(#p) }</style>"))).toBe(false);
});

test("a link within a drawing uses nothing", () => {
  expect(isPlainDrawing(svg('<g id="a"><a href="#a"><text>up</text></a></g>'))).toBe(true);
});
