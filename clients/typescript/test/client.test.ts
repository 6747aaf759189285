// The hand-written part of the package, against a server in this process.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';

import { createWrite, getDataset, JobUnfinishedError, ProblemError, value, waitForJob } from 'headwater-client';
import { Answers, type Reply } from './server.js';

let server: Answers;

beforeEach(async () => {
  server = new Answers();
  await server.start();
});

afterEach(() => server.stop());

const REFUSED = { type: '/problems/not-found', title: 'Not found', status: 404, detail: 'there is no dataset x' };
const BUSY: Reply = { status: 503, body: { type: '/problems/busy', title: 'Busy', status: 503 } };

test('a request carries the credential, and its value is returned', async () => {
  server.replies = [{ status: 200, body: { id: 'd1', name: 'orders' } }];
  const dataset = await value(getDataset({ client: server.client(), path: { dataset: 'orders' } }));
  assert.equal(dataset.name, 'orders');
  assert.equal(server.requests[0]?.headers.authorization, 'Bearer hw_key');
  assert.equal(server.requests[0]?.url, '/datasets/orders');
});

test('a refusal is a ProblemError with the problem document', async () => {
  server.replies = [{ status: 404, body: REFUSED }];
  const refused = value(getDataset({ client: server.client(), path: { dataset: 'x' } }));
  await assert.rejects(refused, (error: unknown) => {
    assert.ok(error instanceof ProblemError);
    assert.deepEqual(error.problem, REFUSED);
    return error.message === '404 /problems/not-found: there is no dataset x';
  });
  assert.equal(server.requests.length, 1);
});

test('an error page of a proxy is a ProblemError with its status and text', async () => {
  server.replies = [{ status: 400, body: 'no such host' }];
  const refused = value(getDataset({ client: server.client(), path: { dataset: 'x' } }));
  await assert.rejects(refused, (error: unknown) => {
    assert.ok(error instanceof ProblemError);
    return error.problem.status === 400 && error.problem.detail === 'no such host';
  });
});

test('a read is repeated, after the time that Retry-After requests', async () => {
  server.replies = [{ ...BUSY, headers: { 'Retry-After': '7' } }, BUSY, { status: 200, body: { name: 'orders' } }];
  const dataset = await value(getDataset({ client: server.client(), path: { dataset: 'orders' } }));
  assert.equal(dataset.name, 'orders');
  assert.equal(server.requests.length, 3);
  assert.equal(server.slept[0], 7000);
  assert.ok(server.slept[1]! >= 400 && server.slept[1]! <= 800);
});

test('a read is repeated five times at most', async () => {
  server.replies = [BUSY];
  await assert.rejects(value(getDataset({ client: server.client(), path: { dataset: 'orders' } })), ProblemError);
  assert.equal(server.requests.length, 6);
});

test('a Retry-After of more than a minute ends the attempts', async () => {
  server.replies = [{ ...BUSY, headers: { 'Retry-After': '3600' } }];
  await assert.rejects(value(getDataset({ client: server.client(), path: { dataset: 'orders' } })), ProblemError);
  assert.equal(server.requests.length, 1);
});

test('a quota of what exists ends the attempts, and one that passes does not', async () => {
  const quota: Reply = { status: 429, body: { type: '/problems/quota-exceeded', status: 429 } };
  server.replies = [quota];
  await assert.rejects(value(getDataset({ client: server.client(), path: { dataset: 'orders' } })), ProblemError);
  assert.equal(server.requests.length, 1);
  server.replies = [{ ...quota, headers: { 'Retry-After': '5' } }, { status: 200, body: { name: 'orders' } }];
  await value(getDataset({ client: server.client(), path: { dataset: 'orders' } }));
  assert.equal(server.requests.length, 3);
});

test('a write is repeated only with an idempotency key', async () => {
  const body = { operation: 'upsert' as const, source: { kind: 'rows' as const, rows: [{ id: 1 }] } };
  server.replies = [BUSY];
  await assert.rejects(value(createWrite({ client: server.client(), path: { dataset: 'd' }, body })), ProblemError);
  assert.equal(server.requests.length, 1);
  server.replies = [BUSY, { status: 202, body: { id: 'j1', state: 'queued' } }];
  const headers = { 'Idempotency-Key': 'once' };
  const job = await value(createWrite({ client: server.client(), path: { dataset: 'd' }, headers, body }));
  assert.equal(job.id, 'j1');
  assert.equal(server.requests.length, 3);
});

test('a job is awaited until it has succeeded', async () => {
  server.replies = [
    { status: 200, body: { id: 'j1', state: 'running' } },
    { status: 200, body: { id: 'j1', state: 'succeeded' } },
  ];
  assert.equal((await waitForJob(server.client(), 'j1')).state, 'succeeded');
  assert.equal(server.requests[0]?.url, '/jobs/j1?wait=60');
});

test('a failed job is a ProblemError, and one that goes on a JobUnfinishedError', async () => {
  server.replies = [{ status: 200, body: { id: 'j1', state: 'failed', error: REFUSED } }];
  await assert.rejects(waitForJob(server.client(), 'j1'), ProblemError);
  server.replies = [{ status: 200, body: { id: 'j1', state: 'running' } }];
  await assert.rejects(waitForJob(server.client(), 'j1', 0), JobUnfinishedError);
});
