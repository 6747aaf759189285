"""A dataset's life: what every feature stands on.

    catalog        datasets, schemas and heads
    jobs           what a request wants done and a worker does later, exactly once
    timeline       versions, commits, files and instants; the commit transaction
    changes        the feed of a dataset's changes
    consumers      positions in feeds, and those who follow them
    idempotency    requests that create something run once for each `Idempotency-Key`
    messaging      Redis: messages to workers, announcements, counters of limited requests
    platform       what a process shares: repositories, storage, settings
    feature        what a feature adds to the processes, as values
    compose, api   the use cases of these rooms, and what they add to the API

Features may use the repositories and tables of catalog, jobs, timeline, changes and consumers in their transactions, as
far as the contract "The rooms of core are imported by their surface" in `pyproject.toml` lists them.
"""
