// Repeats requests that are safe to repeat while the service cannot be reached or asks to come back later.

import { ProblemError } from './answers.js';

const ATTEMPTS = 6;
const FIRST_DELAY_MS = 200;
const DELAY_MS_MAX = 10_000;
const RETRY_AFTER_MS_MAX = 60_000;
const STATUSES = new Set([429, 502, 503, 504]);
const OUTAGE_PAUSE_MS = 2_000;

/** The settings of `retryingFetch`; tests replace them. */
export interface RetryOptions {
  fetch?: (request: Request) => Promise<Response>;
  sleep?: (milliseconds: number) => Promise<void>;
}

// A condition holds once only, and a lease that is extended twice is extended once.
const CONDITIONS = ['Idempotency-Key', 'If-Match', 'If-None-Match'];

/** Whether sending a request twice does no more than sending it once. */
export function isRepeatable(request: Request): boolean {
  if (request.method === 'GET' || request.method === 'HEAD') return true;
  if (CONDITIONS.some((name) => request.headers.has(name))) return true;
  return request.method === 'POST' && new URL(request.url).pathname.endsWith('/lease');
}

/** The delay in milliseconds before the next attempt; undefined if the service asks for more than a minute. */
export function delayOf(attempt: number, retryAfter: string | null, now: number = Date.now()): number | undefined {
  if (retryAfter !== null) {
    const seconds = Number(retryAfter);
    const wanted = Number.isNaN(seconds) ? Date.parse(retryAfter) - now : seconds * 1000;
    if (!Number.isNaN(wanted)) return wanted > RETRY_AFTER_MS_MAX ? undefined : Math.max(wanted, 0);
  }
  const longest = Math.min(FIRST_DELAY_MS * 2 ** attempt, DELAY_MS_MAX);
  // Clients that lost the same service at the same time must not return at the same time.
  return longest / 2 + (Math.random() * longest) / 2;
}

/** Whether the service refuses for as long as nothing is deleted: a quota of what exists or is stored. */
function lasts(response: Response): boolean {
  const ofService = response.headers.get('Content-Type')?.startsWith('application/problem+json') ?? false;
  return response.status === 429 && ofService && !response.headers.has('Retry-After');
}

/** A `fetch` that makes up to six attempts for requests that are safe to repeat, and one for all others. */
export function retryingFetch(options: RetryOptions = {}): (request: Request) => Promise<Response> {
  const send = options.fetch ?? ((request: Request) => globalThis.fetch(request));
  const sleep = options.sleep ?? ((ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)));
  return async (request) => {
    if (!isRepeatable(request)) return send(request);
    for (let attempt = 1; ; attempt += 1) {
      const last = attempt === ATTEMPTS;
      try {
        const response = await send(last ? request : request.clone());
        const delay = delayOf(attempt, response.headers.get('Retry-After'));
        if (last || delay === undefined || !STATUSES.has(response.status) || lasts(response)) return response;
        await response.body?.cancel();
        await sleep(delay);
      } catch (error) {
        if (last || request.signal.aborted) throw error;
        await sleep(delayOf(attempt, null)!);
      }
    }
  };
}

/** Resolves after a time. Rejects with the reason of the signal once that is aborted. */
export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener('abort', stop, { once: true });
  });
}

/** Calls again after outages, until one has lasted for `seconds`. The call has to be safe to repeat. */
export async function outlast<T>(call: () => Promise<T>, seconds: number, signal?: AbortSignal): Promise<T> {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (signal?.aborted || !isOutage(error) || Date.now() + OUTAGE_PAUSE_MS > deadline) throw error;
      await pause(OUTAGE_PAUSE_MS, signal);
    }
  }
}

function isOutage(error: unknown): boolean {
  // `fetch` throws a TypeError if it cannot reach the service.
  return error instanceof TypeError || (error instanceof ProblemError && STATUSES.has(error.problem.status));
}
