// The TypeScript client of Headwater: one function for each operation of the OpenAPI document, with its types.

import { createClient, type Client } from './generated/client/index.js';
import { getJob } from './generated/index.js';
import type { Job, Problem } from './generated/index.js';
import { retryingFetch } from './retry.js';

export * from './generated/index.js';
export { createClient, type Client } from './generated/client/index.js';
export { retryingFetch, type RetryOptions } from './retry.js';

const WAIT_SECONDS_MAX = 60;

/** The address of the service and a credential, which decides the tenant. */
export interface ConnectionOptions {
  url: string;
  apiKey: string;
  /** Sends requests; `retryingFetch()` by default. */
  fetch?: (request: Request) => Promise<Response>;
}

/** The service refused a request, or a job failed or was cancelled. */
export class ProblemError extends Error {
  /** The problem document (RFC 9457). A response of another kind, such as a proxy's, has its status and its text. */
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(`${problem.status} ${problem.type}: ${problem.detail ?? problem.title}`);
    this.name = 'ProblemError';
    this.problem = problem;
  }
}

/** The job had not ended after the requested time; it continues. */
export class JobUnfinishedError extends Error {
  readonly job: Job;

  constructor(job: Job, seconds: number) {
    super(`job ${job.id} is ${job.state} after ${seconds} s`);
    this.name = 'JobUnfinishedError';
    this.job = job;
  }
}

/** A client for the `client` option of every operation. */
export function connect(options: ConnectionOptions): Client {
  return createClient({
    baseUrl: options.url,
    auth: () => options.apiKey,
    fetch: (options.fetch ?? retryingFetch()) as typeof fetch,
  });
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response?: Response;
}

/** The value of a successful answer. Throws ProblemError for any other. */
export async function value<T>(answer: Answer<T> | Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answer;
  if (error === undefined && data !== undefined) return data;
  if (response === undefined) throw error;
  if (isProblem(error)) throw new ProblemError(error);
  const detail = typeof error === 'string' ? error : response.statusText;
  throw new ProblemError({ type: 'about:blank', title: response.statusText, status: response.status, detail } as Problem);
}

/** The job once it has succeeded. Throws ProblemError if it fails or is cancelled, JobUnfinishedError after `seconds`. */
export async function waitForJob(client: Client, job: string, seconds = 600): Promise<Job> {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const left = Math.max(Math.ceil((deadline - Date.now()) / 1000), 0);
    const wait = Math.min(left, WAIT_SECONDS_MAX);
    const found = await value(getJob({ client, path: { job }, query: { wait } }));
    if (found.state === 'succeeded') return found;
    if (found.state === 'failed' || found.state === 'cancelled') throw new ProblemError(problemOf(found));
    if (Date.now() >= deadline) throw new JobUnfinishedError(found, seconds);
  }
}

function problemOf(job: Job): Problem {
  const stated = job.error ?? undefined;
  if (isProblem(stated)) return stated;
  const detail = `job ${job.id} ended as ${job.state}`;
  return { type: `/problems/job-${job.state}`, title: `The job ended as ${job.state}`, status: 409, detail } as Problem;
}

function isProblem(error: unknown): error is Problem {
  return typeof error === 'object' && error !== null && 'type' in error && 'status' in error;
}
