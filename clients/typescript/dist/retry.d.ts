/** The settings of `retryingFetch`; tests replace them. */
export interface RetryOptions {
    fetch?: (request: Request) => Promise<Response>;
    sleep?: (milliseconds: number) => Promise<void>;
}
/** Whether sending a request twice does no more than sending it once. */
export declare function isRepeatable(request: Request): boolean;
/** The delay in milliseconds before the next attempt; undefined if the service asks for more than a minute. */
export declare function delayOf(attempt: number, retryAfter: string | null, now?: number): number | undefined;
/** A `fetch` that makes up to six attempts for requests that are safe to repeat, and one for all others. */
export declare function retryingFetch(options?: RetryOptions): (request: Request) => Promise<Response>;
