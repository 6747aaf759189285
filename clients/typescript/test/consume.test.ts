// Iterators of pages and changes, and consumers, against a server in this process that has a feed.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';

import { type Change, changePages, changes, consume, items, listDatasets, ProblemError, rows } from 'headwater-client';
import { Answers, type Received, type Reply } from './server.js';

const PAGE = 2;

let server: Answers;
let head: number;
let consumer: { name: string; offset: number; revision: number } | undefined;
let lease: string | undefined;

beforeEach(async () => {
  [head, consumer, lease] = [5, undefined, undefined];
  server = new Answers();
  server.reply = feed;
  await server.start();
});

afterEach(() => server.stop());

function problem(status: number, code: string): Reply {
  return { status, body: { type: `/problems/${code}`, title: code, status } };
}

/** A feed of `head` changes, with a consumer. */
function feed({ method, url, headers, body }: Received): Reply {
  const { pathname, searchParams } = new URL(url, 'http://server');
  if (pathname === '/datasets/orders/changes') {
    const since = Number(searchParams.get('since') ?? 0);
    const next = Math.min(since + PAGE, head, Number(searchParams.get('until') ?? head));
    const page = Array.from({ length: next - since }, (_, index) => ({ offset: since + index, op: '+A', row: {} }));
    return { status: 200, body: { changes: page, next_since: next, pending: head - next, earliest: 0, schema_id: 1 } };
  }
  if (pathname.endsWith('/lease')) {
    if (method === 'POST' && lease !== undefined && body.token !== lease) return problem(409, 'consumer-leased');
    lease = method === 'POST' ? `token of ${body.member}` : undefined;
    return { status: 200, body: { token: lease, until: 'later', offset: consumer!.offset, revision: consumer!.revision } };
  }
  if (method === 'PUT') {
    const isNew = headers['if-none-match'] === '*';
    if (isNew ? consumer !== undefined : headers['if-match'] !== `"${consumer!.revision}"`) return problem(412, 'precondition-failed');
    if (body.offset === undefined) return problem(400, 'invalid-request');
    const offset = body.offset === 'earliest' ? 0 : body.offset;
    consumer = { name: 'labels', offset, revision: (consumer?.revision ?? 0) + 1 };
  }
  return { status: 200, body: consumer };
}

async function offsets(iterator: AsyncIterable<{ changes: Array<unknown> }>, count = Infinity): Promise<Array<number[]>> {
  const found: Array<number[]> = [];
  for await (const page of iterator) {
    found.push((page.changes as Change[]).map((change) => change.offset));
    if (found.length === count) break;
  }
  return found;
}

test('pages of the feed follow each other to the head, or to a position', async () => {
  assert.deepEqual(await offsets(changePages(server.client(), 'orders')), [[0, 1], [2, 3], [4]]);
  assert.deepEqual(await offsets(changePages(server.client(), 'orders', { query: { since: '1', until: 2 } })), [[1]]);
  const found = [];
  for await (const change of changes(server.client(), 'orders', { query: { since: '3' } })) found.push(change as Change);
  assert.deepEqual(found.map((change) => change.offset), [3, 4]);
});

test('following does not end at the head, and a signal ends it', async () => {
  const stop = new AbortController();
  const found: number[] = [];
  const reading = (async () => {
    for await (const page of changePages(server.client(), 'orders', { follow: true, signal: stop.signal })) {
      found.push(page.changes.length);
      if (found.length === 4) head = 6;
      if (found.length === 5) stop.abort(new Error('enough'));
    }
  })();
  await assert.rejects(reading, /enough/);
  assert.deepEqual(found, [2, 2, 1, 0, 1]);
  assert.match(server.requests.at(-1)!.url, /feed=longpoll/);
});

test('all pages of lists and of tables are read', async () => {
  server.reply = ({ url }) => {
    const token = new URL(url, 'http://server').searchParams.get('page_token');
    const [page, next] = token === 'second' ? [[3], null] : [[1, 2], 'second'];
    return { status: 200, body: { items: page.map((id) => ({ id })), rows: page.map((id) => ({ id })), next_page_token: next } };
  };
  const client = server.client();
  const ids = [];
  for await (const dataset of items((page_token) => listDatasets({ client, query: { page_token } }))) ids.push(dataset.id);
  for await (const row of rows(client, 'orders')) ids.push(row.id);
  assert.deepEqual(ids, [1, 2, 3, 1, 2, 3]);
});

test('a page is committed once the next one is requested', async () => {
  const committed = [];
  for await (const _page of consume(server.client(), 'orders', 'labels', { follow: false })) committed.push(consumer!.offset);
  assert.deepEqual(committed, [0, 2, 4]);
  assert.equal(consumer!.offset, 5);
});

test('a reader that stops gets its last page again', async () => {
  assert.deepEqual(await offsets(consume(server.client(), 'orders', 'labels'), 2), [[0, 1], [2, 3]]);
  assert.equal(consumer!.offset, 2);
  assert.deepEqual(await offsets(consume(server.client(), 'orders', 'labels', { follow: false })), [[2, 3], [4]]);
});

test('a commit whose response was lost is not an error', async () => {
  let lost = false;
  server.reply = (request) => {
    const reply = feed(request);
    if (request.method !== 'PUT' || request.headers['if-match'] === undefined || lost) return reply;
    lost = true;
    return undefined;
  };
  assert.deepEqual(await offsets(consume(server.client(), 'orders', 'labels', { follow: false })), [[0, 1], [2, 3], [4]]);
  assert.ok(lost);
});

test('a consumer that another reader has moved is an error', async () => {
  const reading = consume(server.client(), 'orders', 'labels');
  await reading.next();
  consumer = { name: 'labels', offset: 4, revision: 9 };
  await assert.rejects(reading.next(), (error: unknown) => error instanceof ProblemError && error.code === 'precondition-failed');
});

test('a consumer whose limits have changed goes on', async () => {
  const reading = consume(server.client(), 'orders', 'labels');
  await reading.next();
  consumer = { ...consumer!, revision: 9 };
  await reading.next();
  assert.deepEqual([consumer!.offset, consumer!.revision], [2, 10]);
  await reading.return();
});

test('a member leases the consumer, and releases it', async () => {
  const reading = consume(server.client(), 'orders', 'labels', { member: 'a' });
  await reading.next();
  assert.equal(lease, 'token of a');
  const other = consume(server.client(), 'orders', 'labels', { member: 'b' });
  await assert.rejects(other.next(), (error: unknown) => error instanceof ProblemError && error.code === 'consumer-leased');
  await reading.next();
  assert.equal(server.requests.filter((request) => request.method === 'PUT').at(-1)!.body.lease, 'token of a');
  await reading.return();
  assert.equal(lease, undefined);
});

test('an outage is waited out, and a longer one is an error', async () => {
  let failures = 7;
  server.reply = (request) => (failures-- > 0 ? problem(503, 'unavailable') : feed(request));
  assert.deepEqual(await offsets(consume(server.client(), 'orders', 'labels', { follow: false })), [[0, 1], [2, 3], [4]]);
  failures = Infinity;
  await assert.rejects(consume(server.client(), 'orders', 'labels', { outageSeconds: 0 }).next(), ProblemError);
});
