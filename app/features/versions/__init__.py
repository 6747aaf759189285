"""Earlier versions of a dataset: names for them, going back to them, and comparing them.

A savepoint or a tag is a name for a version. The version stays readable as long as it has the name; a savepoint keeps
the feed since that version too. A restore or a rollback is a write of the rows that an earlier version had, so the feed
records what it changes, and it can be undone in the same way. A comparison counts the rows that two versions differ in.

Each is a job: `service/name_versions`, `service/restores` and `service/comparisons` accept it, check what is known
already, and run it. `service/versions` finds a version by number, time or name, also for reads. `service/tag_policy`
tags the last version of each period by itself (`services.tags` of the dataset). `repository` stores the names;
`app/core/timeline/repository/kept_versions` knows when they lapse.

    POST /datasets/orders/savepoints {"name": "before-import"}
    POST /datasets/orders/restores {"savepoint": "before-import"}
"""
