"""The kinds of jobs, each declared once: what is requested, what results, where it runs, and what the timeline shows.

- `JobKind`: the name of a kind, as users and the database have it.
- `JobDeclaration`: the declaration of one kind.
- a request: what is stored with a job. A `TaskRequest` of each kind of task; a `WriteRequest` for all kinds of writes.
- a result: what a job that has succeeded shows as `result`.
- a handler (`app/core/jobs/service/run_tasks.py`) runs the tasks of a kind; its feature registers it.

A kind of task that is new has a name in `kind.py`, a module here with its request, its result and its declaration, and
a line in `declared.py`. A name without a declaration stops the import, and one without a handler the start of a worker.

>>> from app.core.jobs.kinds.declared import KINDS
>>> from app.core.jobs.kinds.verification import VerifyTask
>>> declaration = KINDS[VerifyTask(version=7).kind]
>>> declaration.time_limited, declaration.action
(True, None)
"""
