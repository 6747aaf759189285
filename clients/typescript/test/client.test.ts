// The hand-written part of the package, against a server in this process.

import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, test } from 'node:test';

import {
  connect,
  createWrite,
  getDataset,
  JobUnfinishedError,
  ProblemError,
  retryingFetch,
  value,
  waitForJob,
} from 'headwater-client';

interface Reply {
  status: number;
  headers?: Record<string, string>;
  body: unknown;
}

let server: Server;
let url: string;
let replies: Reply[];
let requests: IncomingMessage[];
let slept: number[];

beforeEach(async () => {
  [replies, requests, slept] = [[], [], []];
  server = createServer((request, response) => {
    requests.push(request);
    request.resume();
    const reply = replies.length > 1 ? replies.shift()! : replies[0]!;
    const isProblem = reply.status >= 400 && typeof reply.body !== 'string';
    const type = typeof reply.body === 'string' ? 'text/plain' : `application/${isProblem ? 'problem+json' : 'json'}`;
    response.writeHead(reply.status, { 'Content-Type': type, ...reply.headers });
    response.end(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function client() {
  const sleep = async (milliseconds: number) => {
    slept.push(milliseconds);
  };
  return connect({ url, apiKey: 'hw_key', fetch: retryingFetch({ sleep }) });
}

const REFUSED = { type: '/problems/not-found', title: 'Not found', status: 404, detail: 'there is no dataset x' };
const BUSY: Reply = { status: 503, body: { type: '/problems/busy', title: 'Busy', status: 503 } };

test('a request carries the credential, and its value is returned', async () => {
  replies = [{ status: 200, body: { id: 'd1', name: 'orders' } }];
  const dataset = await value(getDataset({ client: client(), path: { dataset: 'orders' } }));
  assert.equal(dataset.name, 'orders');
  assert.equal(requests[0]?.headers.authorization, 'Bearer hw_key');
  assert.equal(requests[0]?.url, '/datasets/orders');
});

test('a refusal is a ProblemError with the problem document', async () => {
  replies = [{ status: 404, body: REFUSED }];
  const refused = value(getDataset({ client: client(), path: { dataset: 'x' } }));
  await assert.rejects(refused, (error: unknown) => {
    assert.ok(error instanceof ProblemError);
    assert.deepEqual(error.problem, REFUSED);
    return error.message === '404 /problems/not-found: there is no dataset x';
  });
  assert.equal(requests.length, 1);
});

test('an error page of a proxy is a ProblemError with its status and text', async () => {
  replies = [{ status: 400, body: 'no such host' }];
  const refused = value(getDataset({ client: client(), path: { dataset: 'x' } }));
  await assert.rejects(refused, (error: unknown) => {
    assert.ok(error instanceof ProblemError);
    return error.problem.status === 400 && error.problem.detail === 'no such host';
  });
});

test('a read is repeated, after the time that Retry-After requests', async () => {
  replies = [{ ...BUSY, headers: { 'Retry-After': '7' } }, BUSY, { status: 200, body: { name: 'orders' } }];
  const dataset = await value(getDataset({ client: client(), path: { dataset: 'orders' } }));
  assert.equal(dataset.name, 'orders');
  assert.equal(requests.length, 3);
  assert.equal(slept[0], 7000);
  assert.ok(slept[1]! >= 400 && slept[1]! <= 800);
});

test('a read is repeated five times at most', async () => {
  replies = [BUSY];
  await assert.rejects(value(getDataset({ client: client(), path: { dataset: 'orders' } })), ProblemError);
  assert.equal(requests.length, 6);
});

test('a Retry-After of more than a minute ends the attempts', async () => {
  replies = [{ ...BUSY, headers: { 'Retry-After': '3600' } }];
  await assert.rejects(value(getDataset({ client: client(), path: { dataset: 'orders' } })), ProblemError);
  assert.equal(requests.length, 1);
});

test('a write is repeated only with an idempotency key', async () => {
  const body = { operation: 'upsert' as const, source: { kind: 'rows' as const, rows: [{ id: 1 }] } };
  replies = [BUSY];
  await assert.rejects(value(createWrite({ client: client(), path: { dataset: 'd' }, body })), ProblemError);
  assert.equal(requests.length, 1);
  replies = [BUSY, { status: 202, body: { id: 'j1', state: 'queued' } }];
  const headers = { 'Idempotency-Key': 'once' };
  const job = await value(createWrite({ client: client(), path: { dataset: 'd' }, headers, body }));
  assert.equal(job.id, 'j1');
  assert.equal(requests.length, 3);
});

test('a job is awaited until it has succeeded', async () => {
  replies = [
    { status: 200, body: { id: 'j1', state: 'running' } },
    { status: 200, body: { id: 'j1', state: 'succeeded' } },
  ];
  assert.equal((await waitForJob(client(), 'j1')).state, 'succeeded');
  assert.equal(requests[0]?.url, '/jobs/j1?wait=60');
});

test('a failed job is a ProblemError, and one that goes on a JobUnfinishedError', async () => {
  replies = [{ status: 200, body: { id: 'j1', state: 'failed', error: REFUSED } }];
  await assert.rejects(waitForJob(client(), 'j1'), ProblemError);
  replies = [{ status: 200, body: { id: 'j1', state: 'running' } }];
  await assert.rejects(waitForJob(client(), 'j1', 0), JobUnfinishedError);
});
