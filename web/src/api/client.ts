/** The one client of the API. Its types are made from the server's own description, by tools/build_web.py --types. */
import createClient, { type Middleware } from "openapi-fetch";
import type { components, paths } from "./schema";
import { takePrefetched } from "./prefetched";
import { ApiError, unreachable } from "./errors";
import { readExactly, writeExactly } from "./exact-json";
import { noteUnresponsiveServers } from "./unresponsive-servers";

export type Schemas = components["schemas"];

/** A page that is not ours cannot set this header, so the server takes changes of a signed-in browser only with it. */
export const OWN_REQUEST = { "Mendflow-Request": "web" } as const;

const ownRequest: Middleware = {
  onRequest({ request }) {
    for (const [name, value] of Object.entries(OWN_REQUEST)) request.headers.set(name, value);
    return request;
  },
  onResponse({ request, response }) {
    noteUnresponsiveServers(request.url, response.headers);
  },
};

export const api = createClient<paths>({
  baseUrl: "",
  bodySerializer: (body) => writeExactly(body),
  fetch: (request) => (request.method === "GET" ? takePrefetched(request.url) : undefined) ?? fetch(request),
});
api.use(ownRequest);

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** What the API answered, or an ApiError: `await ask(api.GET("/api/v1/cases/{case}", {params: {path: {case: id}}}))` */
export async function ask<T>(answer: Promise<Answer<T>>): Promise<T> {
  return (await askPage(answer)).data;
}

/** The same for a list that goes on: `next` is what the next request gives as `after`. */
export async function askPage<T>(answer: Promise<Answer<T>>): Promise<{ data: T; next: string }> {
  let got: Answer<T>;
  try {
    got = await answer;
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    throw unreachable(cause);
  }
  if (!got.response.ok) throw ApiError.of(got.response.status, got.error, got.response.headers);
  return { data: got.data as T, next: got.response.headers.get("Mendflow-Next") ?? "" };
}

export interface RequestWish {
  method?: "GET" | "POST" | "PUT" | "DELETE" | "HEAD";
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
  signal?: AbortSignal;
}

async function fetched(path: string, wish: RequestWish): Promise<Response> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(wish.query ?? {})) {
    if (value !== undefined && value !== "") query.set(name, String(value));
  }
  const address = query.size ? `${path}?${query}` : path;
  let response: Response;
  try {
    const prefetched = (wish.method ?? "GET") === "GET" ? takePrefetched(address) : undefined;
    response = await (prefetched ?? fetch(address, {
      method: wish.method ?? "GET",
      headers: { ...OWN_REQUEST, ...(wish.body === undefined ? {} : { "Content-Type": "application/json" }) },
      body: wish.body === undefined ? undefined : writeExactly(wish.body),
      signal: wish.signal,
    }));
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    throw unreachable(cause);
  }
  noteUnresponsiveServers(path, response.headers);
  if (!response.ok) throw ApiError.of(response.status, await bodyOf(response), response.headers);
  return response;
}

async function bodyOf(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** A request that the described API has no types for, such as a file's content. */
export async function requestJson<T>(path: string, wish: RequestWish = {}): Promise<T> {
  const response = await fetched(path, wish);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

export async function requestText(path: string, wish: RequestWish = {}): Promise<string> {
  return (await fetched(path, wish)).text();
}

/** The same with every number as it was written, for forms that send it again. */
export async function requestExactly<T>(path: string, wish: RequestWish = {}): Promise<T> {
  return readExactly(await requestText(path, wish)) as T;
}

/** The beginning of a stored file; `whole` says whether that is all of it. */
export async function requestBeginning(path: string, bytesMax: number, signal?: AbortSignal) {
  const response = await fetched(path, { signal });
  const reader = response.body?.getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  let whole = true;
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    bytes += value.length;
    if (bytes >= bytesMax) {
      whole = false;
      await reader.cancel();
      break;
    }
  }
  return { blob: new Blob(parts), whole };
}
