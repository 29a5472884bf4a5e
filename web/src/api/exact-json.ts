/** JSON of which nothing changes on its way through a browser. Its own reader makes `1.0` and 12345678901234567890 numbers that are
 * written as 1 and 12345678901234567000; and what a person writes may be meant otherwise than it would be read: `1.10` is a version.
 * Both are as `core/model/exact_json.py` and `core/model/text_data.py` have them. */
import { nullPrototypeRecord } from "@/components/own-properties";

/** A number that a number of JavaScript would be written otherwise than. */
export class ExactNumber {
  constructor(readonly text: string) {}
  toString(): string {
    return this.text;
  }
}

/** Something of the text would change, or it is no JSON (`NotJson`); the message says what to write. */
export class InexactJson extends Error {}
export class NotJson extends InexactJson {}

const INT_MIN = -(2n ** 63n);
const INT_MAX = 2n ** 64n - 1n;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const TEXT = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SPACE = /[ \t\n\r]*/y;
const WORDS: readonly (readonly [string, unknown])[] = [["true", true], ["false", false], ["null", null]];
const NO_NUMBERS = ["NaN", "Infinity", "-Infinity"];

export function isNumber(value: unknown): value is number | ExactNumber {
  return typeof value === "number" || value instanceof ExactNumber;
}

/** How a number stands in a text: a fraction always has its point, and an exponent only if it is very large or very small. */
export function numberText(number: number): string {
  if (Object.is(number, -0)) return "-0.0";
  const text = String(number);
  const small = /^(-?)(\d)(?:\.(\d+))?e-7$/.exec(text);
  if (small) return `${small[1]}0.0000001`.slice(0, -1) + `${small[2]}${small[3] ?? ""}`;
  return /[.e]/.test(text) ? text : `${text}.0`;
}

/** The number that JSON means by a text; `null` where it has more digits than a number keeps. */
export function numberOf(text: string): number | ExactNumber | null {
  if (/[.eE]/.test(text)) {
    const number = Number(text);
    return Number.isFinite(number) ? kept(numberText(number)) : null;
  }
  const whole = BigInt(text);
  return whole >= INT_MIN && whole <= INT_MAX ? kept(String(whole)) : null;
}

function kept(text: string): number | ExactNumber {
  const number = Number(text);
  return String(number) === text ? number : new ExactNumber(text);
}

export function writeExactly(value: unknown, indent = 0): string {
  return written(value, indent ? `\n` : "", " ".repeat(indent));
}

function written(value: unknown, line: string, indent: string): string {
  if (value instanceof ExactNumber) return value.text;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if ("toJSON" in value) return JSON.stringify(value);
  const inner = line && line + indent;
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((each) => written(each, inner, indent))
    : Object.entries(value).flatMap(([name, each]) => (each === undefined ? [] : [`${JSON.stringify(name)}:${line && " "}${written(each, inner, indent)}`]));
  const [open, close] = isList ? "[]" : "{}";
  return parts.length ? `${open}${inner}${parts.join(`,${inner}`)}${line}${close}` : `${open}${close}`;
}

export function readExactly(text: string): unknown {
  return new Reader(text).whole();
}

class Reader {
  private at = 0;
  constructor(private readonly text: string) {}

  whole(): unknown {
    const value = this.value();
    this.take(SPACE);
    if (this.at < this.text.length) this.wrong("more follows after its end");
    return value;
  }

  private value(): unknown {
    this.take(SPACE);
    const sign = this.text[this.at];
    if (sign === "{") return this.map();
    if (sign === "[") return this.parts("]", () => this.value());
    if (sign === '"') return this.string();
    for (const [word, value] of WORDS) if (this.takes(word)) return value;
    for (const word of NO_NUMBERS) if (this.takes(word)) throw new InexactJson(`${word} is no number of JSON; write "${word}", in quotes, to have it as a text`);
    return this.number();
  }

  private number(): number | ExactNumber {
    const text = this.take(NUMBER);
    if (!text) this.wrong("a value is missing");
    const number = numberOf(text);
    const shown = text.slice(0, 40);
    if (number === null) throw new InexactJson(`${shown} has more digits than a number keeps; write "${shown}", in quotes, to have it as a text`);
    const digits = text.split(/e/i, 1)[0] ?? "";
    if (/\.\d*0$/.test(digits) && !digits.endsWith(".0")) throw new InexactJson(`${shown} could be meant as a text; write ${number} for the number, or "${shown}"`);
    return number;
  }

  private string(): string {
    const text = this.take(TEXT);
    if (!text) this.wrong("this text has no end, or a sign in it that must not stand there");
    return JSON.parse(text) as string;
  }

  private map(): Record<string, unknown> {
    const found = nullPrototypeRecord<unknown>();
    this.parts("}", () => {
      this.take(SPACE);
      if (this.text[this.at] !== '"') this.wrong("a name in quotes is missing");
      const name = this.string();
      if (Object.hasOwn(found, name)) throw new InexactJson(`“${name}” is given twice in one map; which one counts is not clear`);
      this.take(SPACE);
      if (!this.takes(":")) this.wrong("a colon is missing");
      found[name] = this.value();
    });
    return Object.hasOwn(found, "__proto__") ? found : { ...found };
  }

  private parts<T>(end: string, part: () => T): T[] {
    this.at += 1;
    const found: T[] = [];
    this.take(SPACE);
    if (this.takes(end)) return found;
    do {
      found.push(part());
      this.take(SPACE);
    } while (this.takes(","));
    if (!this.takes(end)) this.wrong(`a comma or ${end} is missing`);
    return found;
  }

  private take(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.at += found.length;
    return found;
  }

  private takes(word: string): boolean {
    if (!this.text.startsWith(word, this.at)) return false;
    this.at += word.length;
    return true;
  }

  private wrong(what: string): never {
    const before = this.text.slice(0, this.at).split("\n");
    throw new NotJson(`line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}: this is not JSON: ${what}`);
  }
}
