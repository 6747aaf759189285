"""Writes: from a request to a version of one or more datasets.

1. `handlers` read the request. `service/accept.py` checks it, stages small input, and accepts a job: the reply.
2. `service/run.py` claims the waiting jobs of a dataset as one group (`attempt.py`), and moves it from state to state.
3. Claimed: `service/read_input.py` makes the input of each write staged rows: it decodes a raw body, or calls the
   `InputStager` of the job's kind (a view's refresh, a restore). A write that cannot be read fails alone.
4. Decoded: `service/plan.py` finds the live files at the head, and makes one task per touched file group.
5. Planned: the engine merges. A write whose keys are live, or whose sums overflow, fails alone.
6. Merged: all parts are published in one transaction, and every row that came in is accounted for. Then Committed.
7. Conflicted → Replan: only the file groups that another commit changed are merged again, `replans_max` times at most.
8. Fenced: jobs whose claims are void leave the group. An expired version or another schema sends a part back, too.

The kernel has the rules: limits of rows in `app/kernel/format/rows/row_limits`, options
in `app/kernel/commit/write_rules`.

    group = WriteGroup.of(jobs)             # every part is Claimed
    group = group.moved(part.read(staged))  # Decoded once all of its writes are read
    group = group.replan(conflicted)        # another commit came first
"""
