// Iterators over pages: of lists, of a table, and of the feed.

import { type Answer, value } from './answers.js';
import { readChanges, readRows } from './generated/index.js';
import type { AnyChange, ChangesPage, ReadChangesData, ReadRowsData } from './generated/index.js';
import type { Client } from './generated/client/index.js';
import { outlast } from './retry.js';

const POLL_SECONDS = 25;
const OUTAGE_SECONDS = 3_600;

/** A page that has the token of the next one. */
interface TokenPage {
  next_page_token?: string | null;
}

/** All pages of a list or of a table: `pages((page_token) => listJobs({ client, query: { page_token } }))`. */
export async function* pages<T extends TokenPage>(
  request: (pageToken: string | undefined) => Promise<Answer<T>>,
): AsyncGenerator<T, void, undefined> {
  let token: string | undefined;
  do {
    const page = await value(request(token));
    yield page;
    token = page.next_page_token ?? undefined;
  } while (token !== undefined);
}

/** All items of a list: `items((page_token) => listDatasets({ client, query: { page_token } }))`. */
export async function* items<I>(
  request: (pageToken: string | undefined) => Promise<Answer<TokenPage & { items: Array<I> }>>,
): AsyncGenerator<I, void, undefined> {
  for await (const page of pages(request)) yield* page.items;
}

/** All rows of a table. All pages are of one version. */
export async function* rows(
  client: Client,
  dataset: string,
  query: Omit<NonNullable<ReadRowsData['query']>, 'page_token'> = {},
): AsyncGenerator<Record<string, unknown>, void, undefined> {
  const request = (page_token: string | undefined) => readRows({ client, path: { dataset }, query: { ...query, page_token } });
  for await (const page of pages(request)) yield* page.rows;
}

/** How the feed is read. */
export interface ChangePagesOptions {
  /** The position, the selection and the form: the parameters of `readChanges`. */
  query?: Omit<NonNullable<ReadChangesData['query']>, 'consumer' | 'feed' | 'timeout'>;
  /** Do not end at the head, but wait for changes. A poll without changes gives an empty page. */
  follow?: boolean;
  /** How long a request waits for changes, in seconds; 25 by default. */
  pollSeconds?: number;
  /** How long the service may be out of reach before an error is thrown, in seconds; an hour by default. */
  outageSeconds?: number;
  /** Ends the iteration with the reason of the signal. */
  signal?: AbortSignal;
}

/** Pages of the feed from a position to the head, or with `follow` for ever. Store `next_since` with what you did. */
export async function* changePages(
  client: Client,
  dataset: string,
  options: ChangePagesOptions = {},
): AsyncGenerator<ChangesPage, void, undefined> {
  const { follow = false, pollSeconds = POLL_SECONDS, outageSeconds = OUTAGE_SECONDS, signal } = options;
  const polling = follow ? { feed: 'longpoll' as const, timeout: pollSeconds } : {};
  let query: NonNullable<ReadChangesData['query']> = { ...options.query, ...polling };
  for (;;) {
    const request = () => value(readChanges({ client, path: { dataset }, query, signal }));
    const page = await outlast(request, outageSeconds, signal);
    const next = String(page.next_since);
    // Between a -C and its +C the service stops before both, so the last page may leave the position as it is.
    const stopped = query.until !== undefined && (next === String(query.until) || next === query.since);
    yield page;
    if (!follow && (page.pending === 0 || stopped)) return;
    const { since: _since, since_version: _version, since_time: _time, ...rest } = query;
    query = { ...rest, since: next };
  }
}

/** The changes of `changePages`, one by one. */
export async function* changes(
  client: Client,
  dataset: string,
  options: ChangePagesOptions = {},
): AsyncGenerator<AnyChange, void, undefined> {
  for await (const page of changePages(client, dataset, options)) yield* page.changes;
}
