/** What the API said when it refused, and what a person can do about it. */

interface ErrorBody {
  code: string;
  message: string;
  fields: Record<string, unknown>;
}

function isErrorBody(body: unknown): body is ErrorBody {
  return typeof body === "object" && body !== null && "code" in body && "message" in body;
}

const WHAT_TO_DO: Record<string, string> = {
  unauthorized: "Sign in again; your session or token may be over.",
  forbidden: "Ask an administrator for the role that may do this, or sign in with another token.",
  "not-found": "It may have been removed. Go back to the list and look there.",
  conflict: "It has changed meanwhile. Load the page again, look, and decide again.",
  cornerstone: "The rule would change what an earlier rule was made for. Narrow its condition, or take that case into it.",
  invalid: "Correct the field that is named, and try again.",
  "bad-request": "Correct what is named, and try again.",
  "too-many-requests": "Wait a moment; the page asks again by itself.",
  "store-unavailable": "Nothing was changed. Try again in a moment.",
  "not-now": "Nothing was done. Try again in a moment.",
  unreachable: "See whether the server runs (mendflow serve) and whether the network is there. The page goes on by itself.",
  internal: "This is a defect of the server. Its log has the reason under the id that is shown.",
};

export class ApiError extends Error {
  override name = "ApiError";

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly fields: Record<string, unknown> = {},
    readonly retryAfterS = 0,
  ) {
    super(message);
  }

  static of(status: number, body: unknown, headers?: Headers): ApiError {
    const wait = Number(headers?.get("Retry-After") ?? 0) || 0;
    if (isErrorBody(body)) return new ApiError(status, body.code, body.message, body.fields, wait);
    const said = typeof body === "string" && body.length < 400 && !body.startsWith("<") ? body : "";
    return new ApiError(status, "unknown", said || `the server answered with status ${status}`, {}, wait);
  }

  /** The next step, in a sentence. */
  get whatToDo(): string {
    if (this.code === "forbidden" && "path" in this.fields) return "Choose the files here, and they are uploaded; whoever runs the server may let it read that folder.";
    return WHAT_TO_DO[this.code] ?? (this.status >= 500 ? "Try again in a moment." : "");
  }

  /** Fields that are worth showing: plain values, which the message may not have. */
  get details(): [string, string][] {
    return Object.entries(this.fields)
      .filter(([, value]) => ["string", "number", "boolean"].includes(typeof value))
      .map(([name, value]) => [name, String(value)] as [string, string])
      .filter(([, value]) => value !== "" && !this.message.includes(value));
  }

  /** Each problem of a flow, of rules or of a file, where there are several. */
  get problems(): string[] {
    const found = this.fields["problems"] ?? this.fields["errors"];
    if (!Array.isArray(found)) return [];
    return found.map((each: unknown) =>
      typeof each === "string" ? each : isErrorBody(each) || hasMessage(each) ? each.message : JSON.stringify(each),
    );
  }
}

function hasMessage(value: unknown): value is { message: string } {
  return typeof value === "object" && value !== null && typeof (value as { message?: unknown }).message === "string";
}

export function unreachable(cause: unknown): ApiError {
  const error = new ApiError(0, "unreachable", "the server does not answer");
  error.cause = cause;
  return error;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The message with a large first letter, unless it begins with what is spelt as it is: a path, a pattern, a name with signs in it. */
export function asSentence(message: string): string {
  const first = message.trim().split(/\s/, 1)[0] ?? "";
  return /^\p{L}[\p{L}'’-]*[,;:.!?]?$/u.test(first) ? message.trim().replace(/^./u, (letter) => letter.toUpperCase()) : message.trim();
}
