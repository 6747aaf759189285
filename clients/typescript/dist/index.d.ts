import { type Client } from './generated/client/index.js';
import type { Job, Problem } from './generated/index.js';
export * from './generated/index.js';
export { createClient, type Client } from './generated/client/index.js';
export { retryingFetch, type RetryOptions } from './retry.js';
/** The address of the service and a credential, which decides the tenant. */
export interface ConnectionOptions {
    url: string;
    apiKey: string;
    /** Sends requests; `retryingFetch()` by default. */
    fetch?: (request: Request) => Promise<Response>;
}
/** The service refused a request, or a job failed or was cancelled. */
export declare class ProblemError extends Error {
    /** The problem document (RFC 9457). A response of another kind, such as a proxy's, has its status and its text. */
    readonly problem: Problem;
    constructor(problem: Problem);
}
/** The job had not ended after the requested time; it continues. */
export declare class JobUnfinishedError extends Error {
    readonly job: Job;
    constructor(job: Job, seconds: number);
}
/** A client for the `client` option of every operation. */
export declare function connect(options: ConnectionOptions): Client;
interface Answer<T> {
    data?: T;
    error?: unknown;
    response?: Response;
}
/** The value of a successful answer. Throws ProblemError for any other. */
export declare function value<T>(answer: Answer<T> | Promise<Answer<T>>): Promise<T>;
/** The job once it has succeeded. Throws ProblemError if it fails or is cancelled, JobUnfinishedError after `seconds`. */
export declare function waitForJob(client: Client, job: string, seconds?: number): Promise<Job>;
