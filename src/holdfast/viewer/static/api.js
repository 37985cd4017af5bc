// Asks the server. In an exported file there is no server: the answers stand in the page.

import { settings } from "./state.js";
import { token } from "./tokens.js";

const TIMEOUT_MS = 60_000;

// What these routes answer about a checkpoint never changes.
const IMMUTABLE = new Set([
  "blame",
  "context",
  "diff",
  "file",
  "files",
  "messages",
  "part",
  "state",
]);
const KEPT = 300;
const kept = new Map();

export class ApiError extends Error {
  constructor(status, { code, message, hint } = {}) {
    super(message ?? `The server answered with status ${status}.`);
    this.name = "ApiError";
    this.status = status;
    this.code = code ?? "unknown";
    this.hint = hint ?? "";
  }
}

// The answers that an exported file holds.
const answers = embedded();

// Whether this page is an exported file.
export const exported = answers !== null;

export async function get(path, params = {}, { signal } = {}) {
  const asked = question(path, params);
  if (exported) return fromPage(asked);
  if (kept.has(asked)) return again(asked);
  const answer = await request(asked, { signal });
  if (IMMUTABLE.has(path)) keep(asked, answer);
  return answer;
}

export function post(path, body) {
  return request(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json" },
  });
}

// The answer as a stream of bytes, for events.
export async function stream(path, params, signal) {
  return (await send(question(path, params), { signal })).body;
}

// The server's address of a download.
export function address(path, params = {}) {
  return settings.base + "api/1/" + question(path, params);
}

// Parameters in the order of their names: an exported file is asked in the same words.
function question(path, params) {
  const pairs = Object.entries(params).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value])
      .filter((one) => one !== null && one !== undefined && one !== "")
      .map((one) => [name, String(one)]),
  );
  pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  const query = new URLSearchParams(pairs).toString();
  return query === "" ? path : `${path}?${query}`;
}

async function request(asked, options) {
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  const signal = options.signal ? AbortSignal.any([options.signal, limit]) : limit;
  const response = await send(asked, { ...options, signal });
  return response.json();
}

async function send(asked, options) {
  const headers = { ...options.headers, Authorization: `Bearer ${token()}` };
  const response = await reach(settings.base + "api/1/" + asked, { ...options, headers });
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new ApiError(response.status, told.error);
}

async function reach(url, options) {
  try {
    return await fetch(url, { ...options, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const slow = error.name === "TimeoutError";
    throw new ApiError(0, {
      code: slow ? "timeout" : "unreachable",
      message: slow ? "The server did not answer in time." : "The server cannot be reached.",
      hint: "Look whether `holdfast serve` still runs, then try again.",
    });
  }
}

function again(asked) {
  const answer = kept.get(asked);
  keep(asked, answer);
  return answer;
}

// The least recently used answer stands first and leaves first.
function keep(asked, answer) {
  kept.delete(asked);
  kept.set(asked, answer);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value);
}

function embedded() {
  const element = document.getElementById("holdfast-data");
  return element === null ? null : JSON.parse(element.textContent);
}

function fromPage(asked) {
  const answer = answers[`GET ${asked}`];
  if (typeof answer === "string") return answers[answer]; // equal to another one
  if (answer !== undefined) return answer;
  throw new ApiError(404, {
    code: "not_exported",
    message: "This file does not contain that.",
    hint: "Open the store with `holdfast serve` to see everything.",
  });
}
