// Registers a dataset, writes to it, waits for the job and follows the feed, with the generated client.
// Takes HEADWATER_URL and HEADWATER_API_KEY from the environment; prints what it saw as one line of JSON.

import { createClient } from './generated/client/index.js';
import {
  changeDataset,
  createDataset,
  createWrite,
  getJob,
  listDatasetSchemas,
  readChanges,
} from './generated/index.js';
import type { Change, Job, Problem } from './generated/index.js';

const client = createClient({
  baseUrl: process.env.HEADWATER_URL!,
  auth: () => process.env.HEADWATER_API_KEY!,
});

function value<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

async function write(dataset: string, rows: Array<Record<string, unknown>>): Promise<Job> {
  const accepted = value(
    await createWrite({
      client,
      path: { dataset },
      body: { operation: 'upsert', source: { kind: 'rows', rows } },
    }),
  );
  let job = accepted;
  while (job.state === 'queued' || job.state === 'running') {
    job = value(await getJob({ client, path: { job: job.id }, query: { wait: 20 } }));
  }
  if (job.state !== 'succeeded') throw new Error(job.error?.detail ?? job.state);
  return job;
}

const dataset = value(
  await createDataset({
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
let since = 0;
while (changes.length < 3) {
  const page = value(
    await readChanges({ client, path: { dataset: dataset.id }, query: { since: String(since), feed: 'longpoll' } }),
  );
  // The others are those of other forms, which are asked for by `form`.
  changes.push(...(page.changes as Change[]));
  since = page.next_since;
}

const refused = await createWrite({
  client,
  path: { dataset: dataset.id },
  body: { operation: 'upsert', source: { kind: 'rows', rows: [{ sensor: null }] } },
});
const problem = refused.error as Problem;

const changed = value(
  await changeDataset({
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
const firstPage = value(
  await readChanges({ client, path: { dataset: dataset.id }, query: { limit: 1, schema: '1' } }),
);
const schemas = value(await listDatasetSchemas({ client, path: { dataset: dataset.id } }));

console.log(
  JSON.stringify({
    versions: jobs.map((job) => job.committed_version),
    changes: changes.map((change) => [change.offset, change.op, change.row]),
    since,
    problem: problem.type,
    fields: changed.schema.fields.map((field) => field.name),
    told_under: [firstPage.schema_id, ...Object.keys((firstPage.changes[0] as Change).row)],
    schemas: schemas.items.map((schema) => schema.id),
  }),
);
