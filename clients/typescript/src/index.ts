// The TypeScript client of Headwater: one function for each operation of the OpenAPI document, with its types.

import { isProblem, ProblemError, value } from './answers.js';
import { createClient, type Client } from './generated/client/index.js';
import { getJob } from './generated/index.js';
import type { Job, Problem } from './generated/index.js';
import { retryingFetch } from './retry.js';

export * from './generated/index.js';
export { type Answer, ProblemError, value } from './answers.js';
export { consume, type ConsumeOptions } from './consume.js';
export { createClient, type Client } from './generated/client/index.js';
export { changePages, type ChangePagesOptions, changes, items, pages, rows } from './pages.js';
export { retryingFetch, type RetryOptions } from './retry.js';
export { InvalidSignatureError, verifyWebhook, type WebhookHeaders, type WebhookMessage } from './webhook.js';

const WAIT_SECONDS_MAX = 60;

/** The address of the service and a credential, which decides the tenant. */
export interface ConnectionOptions {
  url: string;
  apiKey: string;
  /** Sends requests; `retryingFetch()` by default. */
  fetch?: (request: Request) => Promise<Response>;
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

/** The job once it succeeds. Throws ProblemError if it fails or is cancelled, JobUnfinishedError after `seconds`. */
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
