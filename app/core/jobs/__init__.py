"""Jobs: what a request wants done and a worker does later, exactly once.

A request is accepted in one transaction: the job (queued), its instant in the timeline, the idempotency key or batch,
and a message to the workers. A worker claims the waiting jobs of a dataset under a lease and a new epoch, runs them,
and ends them. If it dies, its lease runs out and another claims them; the old epoch can change nothing any more.
Writes of a dataset queue up one group after another; tasks (reads, exports, table services) run beside them.

- kinds/: what each kind of job requests, results in and leaves; values.py: jobs and their states;
  job_parameters.py: what the timeline shows of a request
- service/request_job.py, group_accept.py: accept; jobs.py: list, get, cancel; run_tasks.py, lease.py: run tasks;
  relay.py: send the messages
- repository/: accept, claim, hold, end, list jobs; idempotency keys (replays.py); batches of streams
  (writer_batches.py)
- handlers/jobs.py: the resources `/jobs`; accepted.py: the reply to every request that makes a job; waiting.py: waits
- providers.py: what accepts a request as a job

    GET /jobs?dataset=orders&kind=write&state=queued&state=running
    GET /jobs/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2?wait=20
"""
