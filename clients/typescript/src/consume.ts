// Reads the feed as a consumer, whose position the service stores.

import { ProblemError, value } from './answers.js';
import type { Client } from './generated/client/index.js';
import { getConsumer, leaseConsumer, putConsumer, releaseConsumer } from './generated/index.js';
import type { ChangesPage, FeedConsumer, Lease, NextPosition, PutConsumer } from './generated/index.js';
import { changePages, type ChangePagesOptions } from './pages.js';
import { outlast } from './retry.js';

const LEASE_SECONDS = 60;
const OUTAGE_SECONDS = 3_600;

/** How a consumer reads. Its position is in the service, so `query` has none. */
export interface ConsumeOptions extends Omit<ChangePagesOptions, 'query'> {
  query?: Omit<NonNullable<ChangePagesOptions['query']>, 'since' | 'since_version' | 'since_time' | 'until'>;
  /** Where a consumer begins that does not exist yet; at `earliest` by default. */
  start?: Pick<PutConsumer, 'offset' | 'since_version' | 'since_time'>;
  /** The name of this member, which leases the consumer: other members wait for the end of the lease. */
  member?: string;
  /**
   * How long the lease is, in seconds; 60 by default. It has to be longer than `pollSeconds`, and longer than a page is
   * processed.
   */
  leaseSeconds?: number;
}

/**
 * Pages of the feed from the consumer's position, each committed when the next one is requested. It goes on for ever
 * unless `follow` is false.
 *
 * A reader that ends between two pages, by `break`, an error or a kill, gets the last one again: every change is
 * delivered at least once. With `member`, another member gets the problem `consumer-leased`, and this one gets
 * `lease-lost` if its lease has expired and another member has taken it.
 */
export async function* consume(
  client: Client,
  dataset: string,
  name: string,
  options: ConsumeOptions = {},
): AsyncGenerator<ChangesPage, void, undefined> {
  const { start = { offset: 'earliest' as const }, member, leaseSeconds = LEASE_SECONDS, query, follow = true, ...rest } = options;
  const turn = new Turn(client, { dataset, name }, rest.outageSeconds ?? OUTAGE_SECONDS, rest.signal);
  try {
    await turn.begin(start, member === undefined ? undefined : { member, seconds: leaseSeconds });
    const since = String(turn.offset);
    for await (const page of changePages(client, dataset, { ...rest, follow, query: { ...query, since } })) {
      yield page;
      await turn.done(page.next_since);
    }
  } finally {
    await turn.end();
  }
}

interface Membership {
  member: string;
  seconds: number;
}

/** One member's reading of a consumer from page to page. */
class Turn {
  private consumer?: FeedConsumer;
  private membership?: Membership;
  private lease?: Lease;
  private extendAt = 0;

  constructor(
    private readonly client: Client,
    private readonly path: { dataset: string; name: string },
    private readonly outageSeconds: number,
    private readonly signal?: AbortSignal,
  ) {}

  get offset(): NextPosition {
    return this.consumer!.offset;
  }

  /** Creates the consumer if there is none, and leases it for a member. */
  async begin(start: PutConsumer, membership: Membership | undefined): Promise<void> {
    this.membership = membership;
    try {
      this.consumer = await this.put(start, { 'If-None-Match': '*' });
    } catch (error) {
      if (!isCode(error, 'precondition-failed')) throw error;
      this.consumer = await this.get();
    }
    if (membership !== undefined) {
      await this.hold(membership);
      // Another member may have moved it before its lease ended.
      this.consumer = await this.get();
    }
  }

  /** Commits a page, and extends the lease. */
  async done(nextSince: NextPosition): Promise<void> {
    if (nextSince !== this.offset) this.consumer = await this.commit(nextSince);
    if (this.membership !== undefined && Date.now() > this.extendAt) await this.hold(this.membership);
  }

  /** Releases the lease. One that cannot be released expires by itself. */
  async end(): Promise<void> {
    if (this.lease === undefined) return;
    const { token } = this.lease;
    await releaseConsumer({ client: this.client, path: this.path, query: { token } }).catch(() => undefined);
  }

  private async commit(offset: NextPosition): Promise<FeedConsumer> {
    const before = this.consumer!;
    const body: PutConsumer = { offset, ...(this.lease && { lease: this.lease.token }) };
    try {
      return await this.put(body, { 'If-Match': `"${before.revision}"` });
    } catch (error) {
      if (!isCode(error, 'precondition-failed')) throw error;
      const found = await this.get();
      // The response to the first attempt was lost.
      if (found.offset === offset) return found;
      if (found.offset !== before.offset) throw error;
      // Its limits have changed, not its position.
      return this.put(body, { 'If-Match': `"${found.revision}"` });
    }
  }

  private async hold({ member, seconds }: Membership): Promise<void> {
    const body = { member, seconds, token: this.lease?.token ?? null };
    this.lease = await this.outlast(() => value(leaseConsumer({ client: this.client, path: this.path, body })));
    this.extendAt = Date.now() + (seconds * 1000) / 3;
  }

  private get(): Promise<FeedConsumer> {
    return this.outlast(() => value(getConsumer({ client: this.client, path: this.path })));
  }

  private put(body: PutConsumer, headers: Record<string, string>): Promise<FeedConsumer> {
    return this.outlast(() => value(putConsumer({ client: this.client, path: this.path, headers, body })));
  }

  private outlast<T>(call: () => Promise<T>): Promise<T> {
    return outlast(call, this.outageSeconds, this.signal);
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof ProblemError && error.code === code;
}
