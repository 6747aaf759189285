// Registers a dataset, writes to it, waits for the jobs, follows the feed as a consumer and exports it.
// Takes HEADWATER_URL and HEADWATER_API_KEY from the environment; prints what it saw as one line of JSON.

import {
  changeDataset,
  changes as changesOf,
  connect,
  consume,
  createDataset,
  createExport,
  createWrite,
  getExportRun,
  items,
  listDatasets,
  listDatasetSchemas,
  putConsumer,
  readChanges,
  rows,
  value,
  waitForJob,
} from 'headwater-client';
import type { Change, Job, Problem } from 'headwater-client';

const client = connect({ url: process.env.HEADWATER_URL!, apiKey: process.env.HEADWATER_API_KEY! });

async function write(dataset: string, rows: Array<Record<string, unknown>>): Promise<Job> {
  const accepted = await value(
    createWrite({ client, path: { dataset }, body: { operation: 'upsert', source: { kind: 'rows', rows } } }),
  );
  return waitForJob(client, accepted.id, 60);
}

const dataset = await value(
  createDataset({
    client,
    body: {
      name: 'readings',
      schema: {
        fields: [
          { name: 'sensor', type: 'string' },
          { name: 'value', type: 'double' },
        ],
      },
      record_key: ['sensor'],
    },
  }),
);

const jobs = [
  await write(dataset.id, [{ sensor: 'a', value: 1.5 }]),
  await write(dataset.id, [{ sensor: 'a', value: 2.5 }]),
];

const changes: Change[] = [];
let since = '0';
while (changes.length < 3) {
  const page = await value(
    readChanges({ client, path: { dataset: dataset.id }, query: { since, feed: 'longpoll' } }),
  );
  // The other types are those of other delivery formats.
  changes.push(...(page.changes as Change[]));
  since = String(page.next_since);
}

const consumer = await value(
  putConsumer({ client, path: { dataset: dataset.id, name: 'follower' }, body: { offset: Number(since) } }),
);
// Two members in turn. The first one stops before it requests the next page, which a kill would do, too.
const consumed: Array<Array<number>> = [];
for (const member of ['first', 'second']) {
  const options = { member, follow: false, query: { limit: 1 } };
  for await (const page of consume(client, dataset.id, 'members', options)) {
    consumed.push((page.changes as Change[]).map((change) => change.offset));
    if (member === 'first') break;
  }
}
const all: Array<unknown> = [];
for await (const change of changesOf(client, dataset.id)) all.push((change as Change).op);
for await (const row of rows(client, dataset.id)) all.push(row);
for await (const each of items((page_token) => listDatasets({ client, query: { page_size: 1, page_token } }))) all.push(each.name);

const exported = await value(
  createExport({ client, path: { dataset: dataset.id }, body: { query: 'changes', format: 'ndjson' } }),
);
await waitForJob(client, exported.runs[0].job_id, 60);
const run = await value(
  getExportRun({ client, path: { export: exported.id, number: exported.runs[0].number } }),
);

const refused = await createWrite({
  client,
  path: { dataset: dataset.id },
  body: { operation: 'upsert', source: { kind: 'rows', rows: [{ sensor: null }] } },
});
const problem = refused.error as Problem;

const changed = await value(
  changeDataset({
    client,
    path: { dataset: dataset.id },
    headers: { 'If-Match': `"${jobs[1].committed_version}"` },
    body: {
      changes: [
        { kind: 'rename', name: 'value', to: 'celsius' },
        { kind: 'add', field: { name: 'place', type: 'string' } },
      ],
    },
  }),
);
const firstPage = await value(
  readChanges({ client, path: { dataset: dataset.id }, query: { limit: 1, schema: '1' } }),
);
const schemas = await value(listDatasetSchemas({ client, path: { dataset: dataset.id } }));

console.log(
  JSON.stringify({
    versions: jobs.map((job) => job.committed_version),
    changes: changes.map((change) => [change.offset, change.op, change.row]),
    since: Number(since),
    consumer: [consumer.offset, consumer.lag?.changes],
    consumed,
    all,
    exported: [run.rows, run.files.length],
    problem: problem.type,
    fields: changed.schema.fields.map((field) => field.name),
    told_under: [firstPage.schema_id, ...Object.keys((firstPage.changes[0] as Change).row)],
    schemas: schemas.items.map((schema) => schema.id),
  }),
);
