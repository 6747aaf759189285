export type ClientOptions = {
    baseUrl: `${string}://${string}` | (string & {});
};
/**
 * What an instant does to the dataset.
 */
export type Action = 'clean' | 'clustering' | 'commit' | 'compaction' | 'restore' | 'rollback' | 'savepoint' | 'schema' | 'tag';
/**
 * Adds a field behind the others. It is nullable: rows that are there already have no value of it.
 */
export type AddField = {
    kind: 'add';
    field: NewField;
};
/**
 * How the values of a field that meet under one key become one value.
 */
export type Aggregate = 'bool_and' | 'bool_or' | 'collect' | 'count' | 'first' | 'last' | 'last_non_null' | 'max' | 'min' | 'sum';
/**
 * How rows are spread over file groups and, within a group, over buckets.
 *
 * `count`: file groups of a partition (of the dataset, under key_dynamic); 1 for unaware. `key`: the fields that are
 * hashed (default: the record key). `target_rows`, `max_buckets`: a group of a dynamic mode opens another bucket once
 * its buckets hold so many live rows, up to so many buckets (None: no bound). `fixed_now`: postponed rows get one of
 * `count` buckets at once. `shuffle_by_partition`: append-only rows of one write and partition go to one file.
 */
export type Bucket = {
    mode: BucketMode;
    count: number;
    key?: Array<string>;
    function?: BucketFunction;
    target_rows?: number | null;
    max_buckets?: number | null;
    fixed_now?: boolean;
    shuffle_by_partition?: boolean;
};
/**
 * From bucket key to bucket number.
 */
export type BucketFunction = 'hash' | 'mod';
/**
 * How a row finds its file group.
 */
export type BucketMode = 'dynamic' | 'fixed' | 'key_dynamic' | 'postpone' | 'unaware';
/**
 * How a key finds its file group: the `function` of the `key` fields, modulo `count`.
 */
export type BucketRule = {
    mode: BucketMode;
    function: BucketFunction;
    key: Array<string>;
    count: number;
};
/**
 * `written`: by all commits so far, to data files; `write_amplification`: that, to the bytes of live data files.
 */
export type ByteSums = {
    base: number;
    logs: number;
    postponed: number;
    deletion_vectors: number;
    indexes: number;
    changelog: number;
    written: number;
    write_amplification: number | null;
};
/**
 * One change. `row` has the dataset's columns, and so has `before`, which only form `single_event` has.
 *
 * `corrects_offset`: of `-R`, `-C` and `U`, the change that gave the row the values which this one takes back, where
 * the feed knows; otherwise null.
 */
export type Change = {
    offset: number;
    op: ChangeOp;
    version: number;
    corrects_offset: number | null;
    system_time: string;
    event_time: string | null;
    row: {
        [key: string]: unknown;
    };
    before?: {
        [key: string]: unknown;
    } | null;
};
/**
 * How an update is told.
 */
export type ChangeForm = 'debezium' | 'delta' | 'retract' | 'single_event' | 'two_event' | 'upsert';
/**
 * Append, retract, correct-from, correct-to (which directly follows); in form `single_event`, an update.
 */
export type ChangeOp = '+A' | '-R' | '-C' | '+C' | 'U';
/**
 * Settings of the change feed. Without a retention its changes are kept for ever.
 */
export type Changelog = {
    producer?: ChangelogProducer;
    retention?: Retention | null;
    vocabulary?: Vocabulary;
};
/**
 * Gives the feed another retention; null keeps it for ever.
 */
export type ChangelogChange = {
    retention: NewRetention | null;
};
/**
 * How the change feed is made.
 *
 * `full`: the rows before and after, found at write time. `input`: the rows as they were given. `deferred`: found at
 * compaction, with offsets that appear then. `none`: there is no feed.
 */
export type ChangelogProducer = 'deferred' | 'full' | 'input' | 'none';
/**
 * The changes that are kept: [earliest_offset, next_offset).
 */
export type ChangelogSums = {
    changes: number;
    earliest_offset: number;
    next_offset: number;
    files: number;
};
/**
 * A page of the feed. `next_since` is the next call's `since`, in any form; `pending` changes follow, of which a
 * filter may select none. A page without changes is the last only if none is pending.
 *
 * `schema_id` is the schema under which the rows are told.
 */
export type ChangesPage = {
    changes: Array<Change | DebeziumChange | DeltaChange>;
    next_since: number;
    pending: number;
    earliest: number;
    schema_id: number;
};
/**
 * One thing that the service needs. Without a `required` one it is not ready, without others slower.
 */
export type Check = {
    name: string;
    ok: boolean;
    required?: boolean;
    detail?: string;
};
/**
 * How rows are ordered by several columns: by the first, then the second …, or along a Z-order curve of all.
 */
export type ClusterOrder = 'linear' | 'z_order';
/**
 * Rows are kept ordered by `columns`: once a file group has so many bytes that are not yet, it is clustered.
 */
export type ClusteringPolicy = {
    columns: Array<string>;
    order?: ClusterOrder;
    unclustered_bytes?: number;
};
/**
 * A column of a dataset.
 */
export type Column = {
    name: string;
    type: string;
    nullable: boolean;
    doc: string | null;
};
/**
 * Bounds of one column in one file, as JSON values; null where unknown or too long to keep.
 */
export type ColumnStatistics = {
    minimum?: unknown;
    maximum?: unknown;
    null_count?: number | null;
};
/**
 * Bounds and nulls of a column in all files, as JSON values; None where one of the files does not tell.
 */
export type ColumnSummary = {
    name: string;
    minimum: unknown;
    maximum: unknown;
    null_count: number | null;
};
/**
 * The columns of a dataset, in order.
 */
export type Columns = {
    fields: Array<Column>;
};
/**
 * A file group is compacted once any of these is reached; a bound that is null never is.
 *
 * `logs`: how many logs or postponed writes it has. `log_ratio`: their bytes to those of its base files.
 * `deleted_ratio`: rows that deletion vectors took out, to all rows of its base files. Ratios count once there are a
 * quarter of `target_bytes` to fold. `small_files`: how many files of a bucket (of a partition, without a key) are
 * smaller than that. `seconds`: the age of its oldest log or postponed write.
 */
export type CompactionPolicy = {
    logs?: number | null;
    log_ratio?: number | null;
    deleted_ratio?: number | null;
    small_files?: number | null;
    seconds?: number | null;
};
/**
 * How the bytes of an upload are packed.
 */
export type Compression = 'gzip' | 'none';
/**
 * A consumer: the changes before `offset` are done with. `revision` is its ETag, and counts what became of it.
 *
 * The feed has the changes from `earliest` to `head`; `expired`: some that the consumer has not committed are gone.
 */
export type Consumer = {
    name: string;
    kind: ConsumerKind;
    revision: number;
    offset: number;
    head: number;
    earliest: number;
    lag: Lag;
    max_lag: MaxLag | null;
    expired: boolean;
    lease: Holder | null;
    created_at: string;
    moved_at: string;
    links: ConsumerLinks;
};
/**
 * What becomes of a consumer: the position that it commits, its bounds, or both.
 *
 * A position goes forward, unless `reset`. `lease`: the token of the lease under which it is committed.
 */
export type ConsumerChange = {
    offset?: number | Landmark | null;
    max_lag?: MaxLag | null;
    reset?: boolean;
    lease?: string | null;
};
/**
 * Who moves the position: a reader its own; those of the others are moved by workers.
 *
 * That of a `partition_webhook` is none in the feed: it counts events of partitions.
 */
export type ConsumerKind = 'export' | 'partition_webhook' | 'reader' | 'view' | 'webhook';
/**
 * Where a consumer's resources are.
 */
export type ConsumerLinks = {
    self: string;
    dataset: string;
    changes: string;
};
/**
 * Consumers by name.
 */
export type ConsumerPage = {
    items: Array<Consumer>;
    next_page_token: string | null;
};
/**
 * `lag`: the changes that the consumer has before it that is farthest behind; null without consumers.
 */
export type ConsumerSums = {
    count: number;
    lag: number | null;
};
/**
 * The change at `offset` was taken back at offset `corrected_by`, of `version`, by an `op` `-C` or `-R`.
 *
 * A `-C` is directly followed by the `+C` with the row that took its place.
 */
export type Correction = {
    offset: number;
    corrected_by: number;
    op: string;
    version: number;
    system_time: string;
};
/**
 * Corrections in the order in which the feed tells them.
 */
export type CorrectionsPage = {
    corrections: Array<Correction>;
    next_page_token: string | null;
};
/**
 * A dataset. `version` is that of its last commit, `next_offset` the number of changes so far.
 *
 * Changes before `earliest_offset`, and versions before `earliest_version`, are kept no longer.
 */
export type Dataset = {
    id: string;
    name: string;
    schema: Columns;
    record_key: Array<string>;
    ordering_field: string | null;
    event_time_field: string | null;
    partition_by: Array<string>;
    table_type: TableType;
    bucket: Bucket;
    index: Index | null;
    merge_mode: MergeMode;
    sequence_groups: Array<SequenceGroup>;
    aggregates: {
        [key: string]: Aggregate;
    };
    delete_marker: string | null;
    changelog: Changelog;
    target_bytes: number;
    services: TableServices;
    version: number;
    next_offset: number;
    earliest_offset: number;
    earliest_version: number;
    created_at: string;
    committed_at: string | null;
    links: DatasetLinks;
};
/**
 * Changes of a dataset's schema, made one after another, of how long its feed is kept, and of its table services,
 * which take the place of those it has: all, or none.
 */
export type DatasetChanges = {
    changes?: Array<SchemaChange>;
    changelog?: ChangelogChange;
    services?: TableServices;
};
/**
 * Where a dataset's resources are.
 */
export type DatasetLinks = {
    self: string;
    writes: string;
    uploads: string;
    changes: string;
    rows: string;
    timeline: string;
    files: string;
    partitions: string;
    statistics: string;
};
/**
 * Datasets by name.
 */
export type DatasetPage = {
    items: Array<Dataset>;
    next_page_token: string | null;
};
/**
 * A write of a transaction. `dataset`: the id or the name of the dataset that it is to.
 */
export type DatasetWrite = {
    operation: Operation;
    source?: WriteSource;
    mode?: SaveMode;
    overwrite?: Overwrite;
    where?: string;
    partitions?: Array<string>;
    on_error?: OnError;
    merge_schema?: boolean;
    explicit_cast?: boolean;
    drop_duplicates?: boolean;
    expected_version?: number;
    writer_id?: string;
    batch_id?: number;
    dataset: string;
};
/**
 * One change of form `debezium`: the row before and after it, and the time of its commit.
 */
export type DebeziumChange = {
    op: DebeziumOp;
    before: {
        [key: string]: unknown;
    } | null;
    after: {
        [key: string]: unknown;
    } | null;
    source: DebeziumSource;
    ts_ms: number;
};
/**
 * Create, update, delete.
 */
export type DebeziumOp = 'c' | 'u' | 'd';
/**
 * Where a change is from. An update has the offset of its `+C`.
 */
export type DebeziumSource = {
    dataset: string;
    version: number;
    offset: number;
};
/**
 * A message: the changes from `since` to before `next_since`. Its `id` is the header `webhook-id`.
 *
 * `status` and `error` are of the last attempt.
 */
export type Delivery = {
    id: string;
    webhook_id: string;
    since: number;
    next_since: number;
    state: DeliveryState;
    attempts: number;
    next_attempt_at: string | null;
    status: number | null;
    error: string | null;
    created_at: string;
    ended_at: string | null;
};
/**
 * Messages, the newest first.
 */
export type DeliveryPage = {
    items: Array<Delivery>;
    next_page_token: string | null;
};
/**
 * What became of a message: it waits for its next attempt, it arrived, or it was given up.
 */
export type DeliveryState = 'dead' | 'delivered' | 'pending';
/**
 * One change of form `delta`.
 */
export type DeltaChange = {
    row: {
        [key: string]: unknown;
    };
    _change_type: DeltaChangeType;
    _commit_version: number;
    _commit_timestamp: string;
};
/**
 * What a row of form `delta` is; an `update_preimage` is directly followed by its `update_postimage`.
 */
export type DeltaChangeType = 'delete' | 'insert' | 'update_postimage' | 'update_preimage';
/**
 * Where the result of a read job is: in the answer to the request for it, or in files that the answer links to.
 */
export type Disposition = 'files' | 'inline';
/**
 * Why a partition is done: its writers said so, or nothing was written to it for long enough.
 */
export type DoneReason = 'ended' | 'idle';
/**
 * Drops a field. Its values stay readable at earlier versions.
 */
export type DropField = {
    kind: 'drop';
    name: string;
};
/**
 * The paths of partitions that get no more input.
 */
export type EndedPartitions = {
    partitions: Array<string>;
};
/**
 * A live file of a group. `read`: whether the write reads it, for the reason that `answer` gives.
 */
export type ExplainedFile = {
    path: string;
    kind: FileKind;
    partition_path: string;
    bucket: number;
    size_bytes: number;
    live_rows: number;
    read: boolean;
    answer: FileAnswer;
};
/**
 * A file group that the write touches. `number`: what the bucket rule gives for its keys.
 *
 * `rewritten_bytes`: the size of the files that are written anew; `marked_files`: those in which deletion vectors take
 * out the rows of the keys.
 */
export type ExplainedGroup = {
    file_group: string;
    partition_path: string;
    number: number;
    rows: number;
    storing: Storing;
    reason: string;
    files: Array<ExplainedFile>;
    rewritten_bytes: number;
    marked_files: Array<string>;
    keys: Array<ExplainedKey>;
};
/**
 * A row of the write, by its number. `hash`: XXH64 of the canonical bucket key, hexadecimal; null under `mod`.
 *
 * `partition_path` and `bucket` are where the row would be stored; null where that is decided later, or where no row
 * is stored. `effect` is null where nobody looks before compaction.
 */
export type ExplainedKey = {
    row: number;
    key: {
        [key: string]: unknown;
    };
    hash: string | null;
    live: LiveRow | null;
    effect: WriteEffect | null;
    partition_path: string | null;
    bucket: number | null;
};
/**
 * An export of `dataset` (its id). `offset` is where its next run starts.
 *
 * `runs` are the latest, the last one first; `error` is that of the last one, if it failed.
 */
export type Export = {
    id: string;
    dataset: string;
    name: string | null;
    query: ExportQuery;
    format: ExportFormat;
    form: ChangeForm | null;
    columns: Array<string> | null;
    where: string | null;
    partitions: Array<string> | null;
    since: number;
    until: number | null;
    schedule: Schedule | null;
    target_bytes: number;
    max_lag: MaxLag | null;
    state: ExportState;
    offset: number;
    error: Problem | null;
    runs: Array<ExportRunSummary>;
    created_at: string;
    links: ExportLinks;
};
/**
 * A file of a run. `checksum` is `xxh3-128:` and the digest, `sha256` another; both hexadecimal.
 *
 * Of changes, `first_offset` and `next_offset` are the positions between which the file has all that was asked for.
 */
export type ExportFile = {
    name: string;
    rows: number;
    size_bytes: number;
    checksum: string;
    sha256: string;
    first_offset: number | null;
    next_offset: number | null;
    links: FileLinks;
};
/**
 * Which of the formats of files an export can be written in.
 */
export type ExportFormat = 'arrow' | 'csv' | 'ndjson' | 'parquet';
/**
 * Where an export's resources are.
 */
export type ExportLinks = {
    self: string;
    runs: string;
    dataset: string;
};
/**
 * Exports of a dataset, the latest first.
 */
export type ExportPage = {
    items: Array<Export>;
    next_page_token: string | null;
};
/**
 * What is exported: the changes of a range, or the latest rows of the keys that changed in it.
 */
export type ExportQuery = 'changes' | 'incremental';
/**
 * A run with its manifest. `versions` are those of the first and of the last change, null if there was none.
 *
 * `schema`, `rows` and `created_at` are null before the run has succeeded.
 */
export type ExportRun = {
    export_id: string;
    number: number;
    state: JobState;
    job_id: string;
    error: Problem | null;
    dataset: string;
    query: ExportQuery;
    form: ChangeForm | null;
    format: ExportFormat;
    offsets: RunOffsets;
    versions: Versions | null;
    schema: ManifestSchema | null;
    files: Array<ExportFile>;
    rows: number | null;
    created_at: string | null;
    links: RunLinks;
};
/**
 * Runs of an export, the latest first.
 */
export type ExportRunPage = {
    items: Array<ExportRunSummary>;
    next_page_token: string | null;
};
/**
 * A run: the changes from `since` up to `until`. `error` says why it failed.
 *
 * `next_since`, `rows`, `files` and `size_bytes` are those that it has written, null before.
 */
export type ExportRunSummary = {
    number: number;
    state: JobState;
    since: number;
    until: number;
    next_since: number | null;
    rows: number | null;
    files: number | null;
    size_bytes: number | null;
    job_id: string;
    error: Problem | null;
    created_at: string;
    links: RunLinks;
};
/**
 * `active` exports hold the feed from their position on, and so do `paused` ones, which do not run by themselves.
 *
 * `ended` ones have reached their end, or ran once as they were asked to: they hold nothing but their files.
 */
export type ExportState = 'active' | 'ended' | 'paused';
/**
 * What changes of an export: whether it runs by itself, and when; `null` takes the schedule away.
 */
export type ExportSwitch = {
    state?: ExportState;
    schedule?: Schedule | null;
};
/**
 * Whether an empty page is answered at once (`normal`) or as soon as there is a change (`longpoll`).
 */
export type Feed = 'longpoll' | 'normal';
/**
 * One column. `id` stays with the column for ever; names may change.
 */
export type Field = {
    id: number;
    name: string;
    type: string;
    nullable?: boolean;
    doc?: string | null;
};
/**
 * One fault in a request body: `pointer` is an RFC 6901 JSON pointer, `detail` says what was expected.
 */
export type FieldError = {
    pointer: string;
    detail: string;
};
/**
 * A data file at a version. `name` is what `_hw_file_name` shows beside its rows.
 *
 * `live_rows`: those that no deletion vector has taken out. `added_version`: since when the file is as it is here;
 * `written_version`: the commit that wrote it. `clustered`: the order in which a clustering has put its rows.
 * `statistics`: by column, if they were asked for; a column that nothing is known of is left out.
 */
export type File = {
    name: string;
    kind: FileKind;
    partition: string;
    bucket: number;
    file_group: string;
    size_bytes: number;
    rows: number;
    live_rows: number;
    checksum: string;
    schema_id: number;
    added_version: number | null;
    written_version: number | null;
    index: IndexKind | null;
    clustered: ClusterOrder | null;
    statistics: {
        [key: string]: ColumnStatistics;
    } | null;
};
/**
 * Whether the file is read, and what says so. `no_index`: a file of few rows has none. `merged`: the
 * whole group is read, with its logs. `not_asked`: nobody looks for old rows when the write runs.
 */
export type FileAnswer = 'bloom_holds_none' | 'bloom_may_hold' | 'bucket' | 'in_scope' | 'merged' | 'no_index' | 'not_asked' | 'only_file' | 'out_of_scope' | 'record_found' | 'record_found_none' | 'scan_found' | 'scan_found_none' | 'small_file';
/**
 * How a file is written; also what its name ends with.
 */
export type FileFormat = 'arrow' | 'csv' | 'json' | 'ndjson' | 'parquet';
/**
 * What a data file holds: rows of the table, writes that are merged on read, or writes that wait for a bucket.
 */
export type FileKind = 'base' | 'log' | 'postponed';
/**
 * Where a file is.
 */
export type FileLinks = {
    self: string;
};
/**
 * Files of a version, in the order of their paths; every page of one walk is of the same version.
 */
export type FilePage = {
    items: Array<File>;
    version: number;
    next_page_token: string | null;
};
/**
 * Files by kind. `small`: base files far from the size at which the next is begun. `sizes`: base files by size.
 */
export type FileSums = {
    base: number;
    logs: number;
    postponed: number;
    small: number;
    sizes: Array<SizeClass>;
};
/**
 * How the rows of an input are written. `json_rows` is one JSON array of row objects.
 */
export type Format = 'arrow' | 'csv' | 'json_rows' | 'ndjson' | 'parquet';
/**
 * Earlier versions stay readable while they are among the last `versions`, or were the latest `seconds` ago.
 *
 * One of the two is set. With both, a version goes once neither keeps it.
 */
export type HistoryPolicy = {
    versions?: number | null;
    seconds?: number | null;
};
/**
 * The member that holds the consumer, and until when unless it extends its lease.
 */
export type Holder = {
    member: string;
    until: string;
};
/**
 * How keys are found among the files of a file group.
 */
export type Index = {
    type: IndexType;
};
/**
 * What a key index file can tell: where a key is, or whether it may be there.
 */
export type IndexKind = 'bloom' | 'record';
/**
 * How a key is found among the files of its file group.
 */
export type IndexType = 'bloom' | 'bucket' | 'record' | 'simple';
/**
 * One entry of a timeline: an attempt to change the dataset.
 *
 * `actor` is the id of the API key that asked for it, null for what the service does by itself; `parameters` what the
 * request said beside its operation; `error` why it failed. Files and bytes are those of its version, which instants
 * that were committed together share.
 */
export type Instant = {
    id: string;
    action: Action;
    operation: string;
    state: InstantState;
    job_id: string | null;
    transaction_id: string | null;
    actor: string | null;
    actor_name: string | null;
    writer_id: string | null;
    batch_id: number | null;
    parameters: {
        [key: string]: unknown;
    };
    version: number | null;
    schema_id: number | null;
    requested_at: string;
    started_at: string | null;
    completed_at: string | null;
    rows: RowCounts;
    files_added: number;
    files_removed: number;
    bytes_added: number;
    bytes_removed: number;
    first_offset: number | null;
    last_offset: number | null;
    error: Problem | null;
};
/**
 * Instants, the latest request first.
 */
export type InstantPage = {
    items: Array<Instant>;
    next_page_token: string | null;
};
/**
 * Where an instant stands. Only COMPLETED is ever visible to readers.
 */
export type InstantState = 'completed' | 'inflight' | 'requested' | 'rolled_back';
/**
 * A job. `first_offset`–`last_offset` are the changes of its commit, which it may share with writes accepted
 * at the same time; `error` says why it failed. Exports and verifications have no `operation`, but a `result`.
 * `actor` is the id of the API key that asked for it, null for what the service does by itself.
 */
export type Job = {
    id: string;
    kind: JobKind;
    state: JobState;
    operation: Operation | null;
    progress: Progress;
    attempts: number;
    committed_version: number | null;
    first_offset: number | null;
    last_offset: number | null;
    rows: RowCounts;
    result: {
        [key: string]: unknown;
    } | null;
    error: Problem | null;
    created_at: string;
    started_at: string | null;
    finished_at: string | null;
    actor: string | null;
    links: JobLinks;
};
/**
 * What a job does.
 */
export type JobKind = 'clean' | 'clustering' | 'compaction' | 'comparison' | 'export' | 'read' | 'refresh' | 'restore' | 'rollback' | 'savepoint' | 'tag' | 'verify' | 'write';
/**
 * Where a job's resources are.
 */
export type JobLinks = {
    self: string;
    events: string;
    dataset: string;
    transaction: string | null;
};
/**
 * Where a job stands; the last three are final.
 */
export type JobState = 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded';
/**
 * Jobs of the dataset that have not ended.
 */
export type JobSums = {
    queued: number;
    running: number;
};
/**
 * How far a consumer is behind: changes that it has not committed, and the age of the oldest of them.
 */
export type Lag = {
    changes: number;
    seconds: number;
};
/**
 * A position that is named: the first change that is kept, or the head.
 */
export type Landmark = 'earliest' | 'now';
/**
 * A hold on a consumer. `token` goes with the commits of its member; `offset` is where they go on.
 *
 * `revision` is that of the consumer.
 */
export type Lease = {
    token: string;
    until: string;
    offset: number;
    revision: number;
};
/**
 * The process answers.
 */
export type Live = {
    live: boolean;
};
/**
 * The row that a key has now: the commit and the change that gave it its values (null where not known), and the
 * file and position it is at (null for a row that a log has put there).
 */
export type LiveRow = {
    version: number | null;
    offset: number | null;
    file: string | null;
    position: number | null;
};
/**
 * The schema of the dataset under which rows are written.
 */
export type ManifestSchema = {
    id: number;
    fields: Array<Field>;
};
/**
 * How far behind the head a consumer may be and still keep what it has not read: no bound where null.
 */
export type MaxLag = {
    changes?: number | null;
    seconds?: number | null;
};
/**
 * What happens when a key is met again.
 */
export type MergeMode = 'aggregate' | 'commit_time' | 'event_time' | 'first' | 'partial';
/**
 * The Hive table that statistics of the partitions are reported to; the operator says which metastore.
 */
export type MetastorePolicy = {
    database: string;
    table: string;
};
/**
 * The Hive table of a dataset, and which of its versions was reported last; null before the first report.
 *
 * `error`: why reports fail, `failures` of them in a row; the next is tried at `retry_at`.
 */
export type MetastoreReport = {
    database: string;
    table: string;
    version: number | null;
    head: number;
    reported_at: string | null;
    error: string | null;
    failures: number;
    retry_at: string | null;
};
/**
 * A version with a name. `automatic`: the dataset's own services gave it. `expires_at`: null if it stays.
 */
export type NamedVersion = {
    name: string;
    kind: VersionKind;
    version: number;
    automatic: boolean;
    created_at: string;
    expires_at: string | null;
    links: NamedVersionLinks;
};
/**
 * Where the resources of a named version are.
 */
export type NamedVersionLinks = {
    self: string;
    dataset: string;
    rows: string;
};
/**
 * Versions by name.
 */
export type NamedVersionPage = {
    items: Array<NamedVersion>;
    next_page_token: string | null;
};
/**
 * How rows are spread over file groups; absent parts get the default for the kind of dataset.
 */
export type NewBucket = {
    mode?: BucketMode | null;
    count?: number | null;
    key?: Array<string>;
    function?: BucketFunction;
    target_rows?: number | null;
    max_buckets?: number | null;
    fixed_now?: boolean;
    shuffle_by_partition?: boolean;
};
/**
 * Settings of the change feed as a user registers them.
 */
export type NewChangelog = {
    producer?: ChangelogProducer;
    retention?: NewRetention | null;
    vocabulary?: NewVocabulary;
};
/**
 * Which versions to keep, in place of the dataset's `services.history`.
 *
 * Those that are among the last `versions`, or were the latest `seconds` ago. With neither it is the dataset's own
 * history, and without one no version is forgotten.
 */
export type NewClean = {
    versions?: number | null;
    seconds?: number | null;
};
/**
 * By which columns rows are put in order: unless said, those of `services.clustering` of the dataset, in its order.
 *
 * `partitions`: only those that match one of these globs.
 */
export type NewClustering = {
    columns?: Array<string> | null;
    order?: ClusterOrder | null;
    partitions?: Array<string> | null;
};
/**
 * What to compact: the partitions that match one of these globs; all, unless said.
 */
export type NewCompaction = {
    partitions?: Array<string> | null;
};
/**
 * The two versions, each by its number, a time, or the name of a tag or savepoint; the latest unless said.
 */
export type NewComparison = {
    from_version?: number | null;
    from_as_of?: string | null;
    from_tag?: string | null;
    to_version?: number | null;
    to_as_of?: string | null;
    to_tag?: string | null;
};
/**
 * A registration as a user sends it.
 */
export type NewDataset = {
    name: string;
    schema: NewSchema;
    record_key?: Array<string>;
    ordering_field?: string | null;
    event_time_field?: string | null;
    partition_by?: Array<string>;
    table_type?: TableType;
    bucket?: NewBucket | null;
    index?: NewIndex | null;
    merge_mode?: MergeMode | null;
    sequence_groups?: Array<NewSequenceGroup>;
    aggregates?: {
        [key: string]: Aggregate;
    };
    delete_marker?: string | null;
    changelog?: NewChangelog;
    target_bytes?: number;
    services?: TableServices;
};
/**
 * What to export. `form` is for `changes`. `columns`: all unless named; `where`, `partitions`: which rows.
 *
 * It goes from `since` (a position, `earliest` or `now`) to `until`, or to the head as it is when a run is accepted.
 * With a `schedule` it goes on from where it stopped; without, it runs once, and again when it is asked to. A file is
 * ended at `target_bytes`. `max_lag`: how far behind it may be and still keep the feed from being cut before it.
 */
export type NewExport = {
    query: ExportQuery;
    format: ExportFormat;
    form?: ChangeForm;
    columns?: Array<string> | null;
    where?: string | null;
    partitions?: Array<string> | null;
    since?: number | Landmark;
    until?: number | null;
    schedule?: Schedule | null;
    target_bytes?: number;
    name?: string | null;
    max_lag?: MaxLag | null;
};
/**
 * A column as a user registers it.
 */
export type NewField = {
    name: string;
    type: string;
    nullable?: boolean;
    doc?: string | null;
};
/**
 * How keys are found among the files of a file group.
 */
export type NewIndex = {
    type: IndexType;
};
/**
 * Who wants to hold a consumer, and for how many seconds. `token`: that of the hold to extend.
 */
export type NewLease = {
    member: string;
    seconds: number;
    token?: string | null;
};
/**
 * The name, which no other version of the dataset has, and the version: the latest when the job runs, unless said.
 *
 * `keep_seconds`: how long the name is kept, for ever unless said.
 */
export type NewNamedVersion = {
    name: string;
    version?: number | null;
    keep_seconds?: number | null;
};
/**
 * Which records to drive again: those of `job` that wait, 100000 at a time, or the `records` of one job.
 */
export type NewRedrive = {
    job?: string;
    records?: Array<RedrivenRecord>;
};
/**
 * The version to go back to, said in one way. `tag`: the name of a tag or savepoint.
 *
 * `expected_version`: the dataset must be at that version still when the restore commits.
 */
export type NewRestore = {
    version?: number | null;
    savepoint?: string | null;
    tag?: string | null;
    as_of?: string | null;
    expected_version?: number | null;
};
/**
 * How long changes are kept: until they are older than `seconds`, or beyond the last `changes`.
 */
export type NewRetention = {
    seconds?: number | null;
    changes?: number | null;
};
/**
 * How many of the newest versions to undo: those that writes made. `expected_version`: as of a restore.
 */
export type NewRollback = {
    instants?: number;
    expected_version?: number | null;
};
/**
 * The columns of a new dataset, in order.
 */
export type NewSchema = {
    fields: Array<NewField>;
};
/**
 * Fields of a partial merge that follow an ordering field of their own.
 */
export type NewSequenceGroup = {
    ordering_field: string;
    fields: Array<string>;
};
/**
 * Writes to 2–16 different datasets.
 */
export type NewTransaction = {
    writes: Array<DatasetWrite>;
};
/**
 * What to verify: the dataset at `version`, at the latest when the job runs unless said.
 */
export type NewVerification = {
    version?: number | null;
};
/**
 * A view as a user registers it.
 *
 * `record_key`: columns of the result; unless said, those that tell its rows apart, if the SQL shows which do.
 */
export type NewView = {
    name: string;
    sql: string;
    record_key?: Array<string> | null;
    partition_by?: Array<string>;
    table_type?: TableType;
    bucket?: NewBucket | null;
    changelog?: NewChangelog;
};
/**
 * Names of the feed's system columns where it is a flat table; each keeps its own unless another is given.
 */
export type NewVocabulary = {
    offset?: string | null;
    op?: string | null;
    system_time?: string | null;
    event_time?: string | null;
    version?: string | null;
    corrects_offset?: string | null;
};
/**
 * A webhook to register. `since`: the position to start at. `secret`: one is made unless it is given.
 *
 * `events`: `changes` of rows, or which `partitions` are done; then positions count events of partitions, and the
 * members that say how changes are told stay out.
 */
export type NewWebhook = {
    dataset: string;
    url: string;
    events?: WebhookEvents;
    form?: ChangeForm;
    columns?: Array<string> | null;
    where?: string | null;
    partitions?: Array<string> | null;
    since?: number | 'earliest' | 'now';
    batch_changes_max?: number;
    secret?: string | null;
    description?: string | null;
    max_lag?: MaxLag | null;
};
/**
 * A write. `source` is required but for deletes by filter and by partition, which have none.
 *
 * `where`: for operation delete, the rows to take out. `partitions`: for delete_partition, globs of partition paths.
 * `expected_version`: the write fails unless the dataset is at it. `writer_id`, `batch_id`: a batch of a stream,
 * whose batches are numbered upwards.
 */
export type NewWrite = {
    operation: Operation;
    source?: WriteSource;
    mode?: SaveMode;
    overwrite?: Overwrite;
    where?: string;
    partitions?: Array<string>;
    on_error?: OnError;
    merge_schema?: boolean;
    explicit_cast?: boolean;
    drop_duplicates?: boolean;
    expected_version?: number;
    writer_id?: string;
    batch_id?: number;
};
/**
 * What becomes of a write with bad records: it fails, or they are set aside.
 */
export type OnError = 'fail' | 'quarantine';
/**
 * What a write does with its rows.
 */
export type Operation = 'bulk_insert' | 'changelog' | 'delete' | 'delete_partition' | 'insert' | 'overwrite' | 'snapshot' | 'upsert';
/**
 * The scope of an overwrite; `where` belongs to scope `filter`.
 */
export type Overwrite = {
    scope?: OverwriteScope;
    where?: string | null;
};
/**
 * What an overwrite replaces: the table, the partitions that its rows are in, or the rows a filter matches.
 */
export type OverwriteScope = 'filter' | 'partitions' | 'table';
/**
 * A partition at a version.
 *
 * `values`: by the names in its path; null also for a value that is too long for one. `rows`: those of base files that
 * are live, which is what readers see if `exact`; otherwise there are logs (with `log_rows`), which may add rows, or
 * change or take out some. `postponed_rows` nobody sees before a compaction. `written_version`: the last commit that
 * wrote to its files, a compaction too. `changed_version`: the last that changed its data, and `done_version`: the one
 * that has all of it, if it is done; both null where partitions are not marked.
 */
export type Partition = {
    path: string;
    values: {
        [key: string]: string | null;
    };
    base_files: number;
    logs: number;
    postponed: number;
    rows: number;
    exact: boolean;
    log_rows: number;
    postponed_rows: number;
    size_bytes: number;
    written_version: number;
    written_at: string;
    changed_version: number | null;
    changed_at: string | null;
    done_version: number | null;
    done_at: string | null;
};
/**
 * A partition is done once nothing was written to it for `idle_seconds`; `marker`: then a file says so.
 */
export type PartitionDonePolicy = {
    idle_seconds?: number | null;
    marker?: boolean;
};
/**
 * Event `number` of a dataset: `version` has all data of a partition that is done, or brought more to one that was.
 *
 * `reason`: why a partition is done; null for one that was reopened.
 */
export type PartitionEvent = {
    number: number;
    kind: PartitionEventKind;
    partition: string;
    version: number;
    reason: DoneReason | null;
    at: string;
};
/**
 * What became of a partition: all its data was there, or data came to it after that.
 */
export type PartitionEventKind = 'done' | 'reopened';
/**
 * Events in order. `next_since`: where to go on; it is `count` where there are no more for now.
 */
export type PartitionEventPage = {
    items: Array<PartitionEvent>;
    next_since: number;
    count: number;
};
/**
 * A partition: the last version whose write changed it, and when.
 *
 * `done_version`: the version that has all of its data; null, as is `done_at`, while it is open.
 */
export type PartitionMark = {
    path: string;
    changed_version: number;
    changed_at: string;
    done_version: number | null;
    done_at: string | null;
};
/**
 * Partitions, in the order that they were asked for.
 */
export type PartitionMarkList = {
    items: Array<PartitionMark>;
};
/**
 * Partitions of a version by path; every page of one walk is of the same version.
 */
export type PartitionPage = {
    items: Array<Partition>;
    version: number;
    next_page_token: string | null;
};
/**
 * How a payload is given: as it is, or, where it is no UTF-8, in base64.
 */
export type PayloadEncoding = 'base64' | 'text';
/**
 * RFC 9457. `type` is `/problems/<code>`; further members carry the facts.
 */
export type Problem = {
    type: string;
    title: string;
    status: number;
    detail: string;
    instance?: string;
    [key: string]: unknown;
};
/**
 * How far a running job is: `done` of `total` tasks of the stage.
 */
export type Progress = {
    stage: string;
    done?: number;
    total?: number;
};
/**
 * Records in the order in which they were set aside.
 */
export type QuarantinePage = {
    items: Array<QuarantinedRecord>;
    next_page_token: string | null;
};
/**
 * A bad record of a write. `position` is its row number in the write, `payload` what was sent: the JSON text of a
 * row, the record of a CSV whose header line `header` is; a row of Arrow or Parquet as JSON. Pointers in `errors`
 * start at the record. `redrive_job_id` is the job that drove it again.
 */
export type QuarantinedRecord = {
    id: string;
    job_id: string;
    position: number;
    errors: Array<FieldError>;
    payload: string;
    encoding: PayloadEncoding;
    header: string | null;
    written_at: string;
    state: RecordState;
    redrive_job_id: string | null;
};
/**
 * What a read sees: the table, or only what is in base files, which spares merging the logs of merge_on_read.
 */
export type QueryType = 'read_optimized' | 'snapshot';
/**
 * A result as files: all rows are in them, in order from file to file.
 */
export type ReadFiles = {
    disposition: 'files';
    files: Array<ResultFile>;
    format: FileFormat;
    query: ReadQuery;
    version: number;
    begin: number | null;
    rows: number;
    size_bytes: number;
    schema: ReadSchema;
};
/**
 * A column that rows are ordered by. Nulls come last, whichever way.
 */
export type ReadOrder = {
    column: string;
    descending?: boolean;
};
export type ReadOutput = ({
    disposition: 'inline';
} & ReadRows) | ({
    disposition: 'files';
} & ReadFiles);
/**
 * What a read job sees: the table, only its base files, or the last state of the rows that changed in a range.
 */
export type ReadQuery = 'incremental' | 'read_optimized' | 'snapshot';
/**
 * What to read. `snapshot` is the table, `read_optimized` only its base files, both as of `version`, `as_of` or
 * the version named `tag`, the latest unless said.
 *
 * `incremental`: the rows that changed after `begin` (or `begin_time`) and up to `end` (or `end_time`), as they are
 * then, under the latest schema. `columns`: all unless named, in the order in which they are named; `where`,
 * `partitions`: which rows; `limit`: how many at most. `inline`: the result in one answer where it fits.
 */
export type ReadRequest = {
    query?: ReadQuery;
    version?: number | null;
    as_of?: string | null;
    tag?: string | null;
    begin?: number | null;
    begin_time?: string | null;
    end?: number | null;
    end_time?: string | null;
    columns?: Array<string> | null;
    where?: string | null;
    partitions?: Array<string> | null;
    order_by?: Array<ReadOrder>;
    limit?: number | null;
    format?: FileFormat;
    disposition?: Disposition;
};
/**
 * A result in JSON: rows as of `version`, or those that changed after `begin` and up to it.
 */
export type ReadRows = {
    disposition: 'inline';
    rows: Array<{
        [key: string]: unknown;
    }>;
    version: number;
    begin: number | null;
    schema: ReadSchema;
};
/**
 * The columns of a result, in order; `id`: of the schema of the dataset that they are of.
 */
export type ReadSchema = {
    id: number;
    fields: Array<Field>;
};
/**
 * What the service needs, and whether it has it.
 */
export type Ready = {
    ready: boolean;
    checks: Array<Check>;
};
/**
 * Whether a record waits in quarantine, or was driven again.
 */
export type RecordState = 'quarantined' | 'redriven';
/**
 * How many messages are sent again.
 */
export type Redelivered = {
    deliveries: number;
};
/**
 * A record to drive again, as it was or with the repaired `payload`.
 */
export type RedrivenRecord = {
    id: string;
    payload?: string;
};
/**
 * Lets a required field hold nulls.
 */
export type RelaxField = {
    kind: 'relax';
    name: string;
};
/**
 * Gives a field another name; it keeps its values.
 */
export type RenameField = {
    kind: 'rename';
    name: string;
    to: string;
};
/**
 * Puts the fields into another order, which names each of them once.
 */
export type ReorderFields = {
    kind: 'reorder';
    names: Array<string>;
};
/**
 * A file of a result. `checksum` is `xxh3-128:` and the digest, hexadecimal.
 */
export type ResultFile = {
    name: string;
    rows: number;
    size_bytes: number;
    checksum: string;
    links: ResultLinks;
};
/**
 * Where a file of a result is.
 */
export type ResultLinks = {
    self: string;
};
/**
 * How long changes are kept, at least: until they are older than `seconds`, or beyond the last `changes`.
 *
 * None is no bound; one of the two is set.
 */
export type Retention = {
    seconds?: number | null;
    changes?: number | null;
};
/**
 * What became of a write's rows; the five numbers add up to the rows that were sent.
 */
export type RowCounts = {
    inserted?: number;
    updated?: number;
    deleted?: number;
    unchanged?: number;
    quarantined?: number;
};
/**
 * `live`: rows of base files that no deletion vector has taken out, which is what readers see if `exact`.
 *
 * Otherwise there are logs. `deleted_ratio`: rows that vectors took out, to all rows of base files.
 */
export type RowSums = {
    live: number;
    exact: boolean;
    deleted: number;
    deleted_ratio: number;
    in_logs: number;
    postponed: number;
};
/**
 * Rows at `version`, under the schema it had then; every page of one walk is of the same version.
 */
export type RowsPage = {
    rows: Array<{
        [key: string]: unknown;
    }>;
    version: number;
    schema_id: number;
    next_page_token: string | null;
};
/**
 * Rows in the request itself, one object each with the dataset's columns as members.
 */
export type RowsSource = {
    kind: 'rows';
    rows: Array<{
        [key: string]: unknown;
    }>;
};
/**
 * Where a run's resources are.
 */
export type RunLinks = {
    self: string;
    export: string;
    job: string;
    manifest: string;
};
/**
 * The changes of a run: those from `since` up to `next_since`, which is null before it has succeeded.
 */
export type RunOffsets = {
    since: number;
    next_since: number | null;
};
/**
 * What a write does about the data that are there already.
 */
export type SaveMode = 'append' | 'error_if_exists' | 'ignore' | 'overwrite';
/**
 * When an export goes on by itself: so long after its last run began, if there are changes.
 */
export type Schedule = {
    every_seconds: number;
};
/**
 * A schema with the ids that its fields keep for ever. `id` counts the dataset's schemas from 1.
 */
export type Schema = {
    id: number;
    fields: Array<Field>;
    created_at: string;
};
export type SchemaChange = ({
    kind: 'add';
} & AddField) | ({
    kind: 'drop';
} & DropField) | ({
    kind: 'rename';
} & RenameField) | ({
    kind: 'widen';
} & WidenField) | ({
    kind: 'relax';
} & RelaxField) | ({
    kind: 'reorder';
} & ReorderFields);
/**
 * Schemas of a dataset, the latest first.
 */
export type SchemaPage = {
    items: Array<Schema>;
    next_page_token: string | null;
};
/**
 * Fields of a partial merge that follow an ordering field of their own.
 */
export type SequenceGroup = {
    ordering_field: string;
    fields: Array<string>;
};
/**
 * When each table service last did its work, also where it found nothing to do.
 */
export type ServiceTimes = {
    compaction: string | null;
    clustering: string | null;
    clean: string | null;
};
/**
 * The base files that have fewer bytes than `below`, and no fewer than the class before; None is no bound.
 */
export type SizeClass = {
    below: number | null;
    files: number;
    size_bytes: number;
};
/**
 * A table in numbers. `columns`: bounds and nulls of those asked for, in base files, deleted rows included.
 *
 * A bound or count is null where one of the files does not tell.
 */
export type Statistics = {
    version: number;
    committed_at: string | null;
    rows: RowSums;
    files: FileSums;
    partitions: number;
    file_groups: number;
    size_bytes: ByteSums;
    changelog: ChangelogSums;
    versions: VersionSums;
    served_at: ServiceTimes;
    consumers: ConsumerSums;
    jobs: JobSums;
    columns: Array<ColumnSummary>;
};
/**
 * `append`: rows without a key go to new files. `rewrite`: files with old rows are written anew. `mark`: new rows
 * go to new files, and deletion vectors take out the old ones. `log`: rows are kept as they came, to be merged on
 * read. `postpone`: they are kept unseen, until compaction gives them a bucket.
 */
export type Storing = 'append' | 'log' | 'mark' | 'postpone' | 'rewrite';
/**
 * What is done for a dataset without being asked for; null turns a service off.
 */
export type TableServices = {
    compaction?: CompactionPolicy | null;
    clustering?: ClusteringPolicy | null;
    history?: HistoryPolicy | null;
    timeline?: TimelinePolicy | null;
    tags?: TagPolicy | null;
    partition_done?: PartitionDonePolicy | null;
    metastore?: MetastorePolicy | null;
};
/**
 * How an upsert is stored: as new base files, or beside them, to be brought together on read.
 */
export type TableType = 'copy_on_write' | 'merge_on_read';
/**
 * The stretches of time at the end of which a version is tagged, in UTC.
 */
export type TagPeriod = 'day' | 'hour' | 'month' | 'week';
/**
 * After each period its last version is tagged with the period's name; the latest `keep` such tags are kept.
 */
export type TagPolicy = {
    period: TagPeriod;
    keep?: number | null;
};
/**
 * The latest `instants` of the timeline stay in the catalogue; earlier ones are archived, and stay readable.
 */
export type TimelinePolicy = {
    instants?: number;
};
/**
 * Writes to several datasets that happen together or not at all.
 *
 * `jobs`: in the order of the request; they end together. `error`: what made the one fail that failed them all.
 */
export type Transaction = {
    id: string;
    state: JobState;
    jobs: Array<Job>;
    error: Problem | null;
    created_at: string;
    links: TransactionLinks;
};
/**
 * Where a transaction is.
 */
export type TransactionLinks = {
    self: string;
};
/**
 * An upload, to be named by a write. `checksum` is XXH3-128, hexadecimal.
 */
export type Upload = {
    id: string;
    size_bytes: number;
    checksum: string;
    created_at: string;
};
/**
 * Rows in an earlier upload.
 */
export type UploadSource = {
    kind: 'upload';
    upload_id: string;
    format: Format;
    compression?: Compression;
};
/**
 * What a named version is for: a savepoint to go back to, which keeps the feed since, or a tag to read.
 */
export type VersionKind = 'savepoint' | 'tag';
/**
 * Versions from `earliest` on are kept, and those with a name. `commits`: how many there were of each action.
 */
export type VersionSums = {
    earliest: number;
    latest: number;
    commits: {
        [key: string]: number;
    };
};
/**
 * The versions of the first and of the last change of a range.
 */
export type Versions = {
    first: number;
    last: number;
};
/**
 * A view. `paused`: it is refreshed on request only. `error`: why its last refresh failed. `refreshed_at`: when the
 * last one that did not fail had ended.
 */
export type View = {
    id: string;
    name: string;
    sql: string;
    record_key: Array<string>;
    inputs: Array<ViewInput>;
    mode: ViewMode;
    paused: boolean;
    state: ViewState;
    error: Problem | null;
    version: number;
    refreshed_at: string | null;
    created_at: string;
    links: ViewLinks;
};
/**
 * A dataset that a view reads: the view shows its changes before `offset`, those of its versions up to `version`.
 *
 * `dataset`: its name in the SQL. `lag`: how many changes the view does not show yet.
 */
export type ViewInput = {
    dataset: string;
    id: string;
    offset: number;
    version: number;
    lag: number;
};
/**
 * Where the resources of a view are.
 */
export type ViewLinks = {
    self: string;
    refresh: string;
    dataset: string;
    changes: string;
    rows: string;
    timeline: string;
};
/**
 * How a view is brought up to date: from the changes of its input, or from all rows of its inputs.
 */
export type ViewMode = 'recompute' | 'row_by_row';
/**
 * Views by name.
 */
export type ViewPage = {
    items: Array<View>;
    next_page_token: string | null;
};
/**
 * What can be changed of a view: whether it follows its inputs by itself.
 */
export type ViewPatch = {
    paused: boolean;
};
/**
 * Whether a view shows its inputs as they are, or why not.
 */
export type ViewState = 'behind' | 'current' | 'failed';
/**
 * What the system columns of the feed are called where it is a flat table, as in Arrow and Parquet.
 */
export type Vocabulary = {
    offset?: string;
    op?: string;
    system_time?: string;
    event_time?: string;
    version?: string;
    corrects_offset?: string;
};
/**
 * A webhook. The changes before `position` are done with, `pending` more are there. `error` says why it was paused
 * by the service, and `failures` how many messages in a row were given up.
 */
export type Webhook = {
    id: string;
    dataset_id: string;
    dataset: string;
    url: string;
    state: WebhookState;
    events: WebhookEvents;
    form: ChangeForm;
    columns: Array<string> | null;
    where: string | null;
    partitions: Array<string> | null;
    batch_changes_max: number;
    description: string | null;
    max_lag: MaxLag;
    position: number;
    pending: number;
    failures: number;
    error: Problem | null;
    revision: number;
    created_at: string;
    links: WebhookLinks;
};
/**
 * What a webhook tells of: changes of rows, or which partitions are done and which were reopened.
 */
export type WebhookEvents = 'changes' | 'partitions';
/**
 * Where a webhook's resources are.
 */
export type WebhookLinks = {
    self: string;
    deliveries: string;
    dataset: string;
};
/**
 * Webhooks, the newest first.
 */
export type WebhookPage = {
    items: Array<Webhook>;
    next_page_token: string | null;
};
/**
 * What is to change of a webhook; what is left out stays. `since`: the position to go on from, forward or back.
 */
export type WebhookPatch = {
    url?: string;
    form?: ChangeForm;
    columns?: Array<string> | null;
    where?: string | null;
    partitions?: Array<string> | null;
    since?: number | 'earliest' | 'now';
    batch_changes_max?: number;
    description?: string | null;
    max_lag?: MaxLag | null;
    state?: WebhookState;
};
/**
 * A new secret, which is told only now. The one before signs along for `overlap_seconds`.
 */
export type WebhookSecret = {
    secret: string;
    overlap_seconds: number;
};
/**
 * Whether changes are sent. Whatever is paused waits where it is.
 */
export type WebhookState = 'active' | 'paused';
/**
 * What came of a test: whether the receiver took the message, its status and, if it did not, what was wrong.
 */
export type WebhookTest = {
    delivered: boolean;
    status: number | null;
    error: string | null;
    seconds: number;
};
/**
 * A webhook with its secret, which is told only now.
 */
export type WebhookWithSecret = {
    id: string;
    dataset_id: string;
    dataset: string;
    url: string;
    state: WebhookState;
    events: WebhookEvents;
    form: ChangeForm;
    columns: Array<string> | null;
    where: string | null;
    partitions: Array<string> | null;
    batch_changes_max: number;
    description: string | null;
    max_lag: MaxLag;
    position: number;
    pending: number;
    failures: number;
    error: Problem | null;
    revision: number;
    created_at: string;
    links: WebhookLinks;
    secret: string;
};
/**
 * Gives a field a type that holds every value of the one it has.
 *
 * `explicit_cast` allows a date to become a timestamp, the start of that day.
 */
export type WidenField = {
    kind: 'widen';
    name: string;
    type: string;
    explicit_cast?: boolean;
};
/**
 * `merge`: the rule of the merge mode decides between the row and the live one.
 */
export type WriteEffect = 'delete' | 'drop' | 'insert' | 'merge' | 'nothing' | 'quarantine' | 'refuse' | 'replace';
/**
 * What a write would touch if it ran at `version`. `index` is null without a key.
 *
 * `group_count`: the file groups in all, of which the first are listed.
 */
export type WriteExplanation = {
    version: number;
    operation: Operation;
    index: IndexType | null;
    bucket: BucketRule;
    group_count: number;
    file_groups: Array<ExplainedGroup>;
};
export type WriteSource = ({
    kind: 'rows';
} & RowsSource) | ({
    kind: 'upload';
} & UploadSource);
export type ListDatasetsData = {
    body?: never;
    path?: never;
    query?: {
        /**
         * Items on a page.
         */
        page_size?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/datasets';
};
export type ListDatasetsErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ListDatasetsError = ListDatasetsErrors[keyof ListDatasetsErrors];
export type ListDatasetsResponses = {
    /**
     * A page, by name.
     */
    200: DatasetPage;
};
export type ListDatasetsResponse = ListDatasetsResponses[keyof ListDatasetsResponses];
export type CreateDatasetData = {
    body: NewDataset;
    path?: never;
    query?: never;
    url: '/datasets';
};
export type CreateDatasetErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CreateDatasetError = CreateDatasetErrors[keyof CreateDatasetErrors];
export type CreateDatasetResponses = {
    /**
     * Registered.
     */
    201: Dataset;
};
export type CreateDatasetResponse = CreateDatasetResponses[keyof CreateDatasetResponses];
export type DeleteDatasetData = {
    body?: never;
    headers?: {
        /**
         * The ETag that the dataset must still have.
         */
        'If-Match'?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}';
};
export type DeleteDatasetErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The resource is at another version
     */
    412: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type DeleteDatasetError = DeleteDatasetErrors[keyof DeleteDatasetErrors];
export type DeleteDatasetResponses = {
    /**
     * Ended; its name is free at once.
     */
    204: void;
};
export type DeleteDatasetResponse = DeleteDatasetResponses[keyof DeleteDatasetResponses];
export type GetDatasetData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}';
};
export type GetDatasetErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type GetDatasetError = GetDatasetErrors[keyof GetDatasetErrors];
export type GetDatasetResponses = {
    /**
     * The dataset.
     */
    200: Dataset;
};
export type GetDatasetResponse = GetDatasetResponses[keyof GetDatasetResponses];
export type ChangeDatasetData = {
    body: DatasetChanges;
    headers?: {
        /**
         * The ETag that the dataset must still have; required.
         */
        'If-Match'?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}';
};
export type ChangeDatasetErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The resource is at another version
     */
    412: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * If-Match is required
     */
    428: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ChangeDatasetError = ChangeDatasetErrors[keyof ChangeDatasetErrors];
export type ChangeDatasetResponses = {
    /**
     * Changed, at its next version.
     */
    200: Dataset;
};
export type ChangeDatasetResponse = ChangeDatasetResponses[keyof ChangeDatasetResponses];
export type ReadChangesData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * The position to read from: how many changes were seen, 0 unless said. `earliest` is the first change that can still be read, `now` is the head.
         */
        since?: string;
        /**
         * The consumer whose position to read from, in the place of `since`.
         */
        consumer?: string;
        /**
         * Changes on a page; one more where that keeps a `-C` with its `+C`.
         */
        limit?: number;
        /**
         * The position to stop at: no change with this offset or a later one is read. One between a `-C` and its `+C` stops before both.
         */
        until?: number;
        /**
         * The columns to read, comma-separated or repeated; all unless said.
         */
        columns?: Array<string>;
        /**
         * A filter: the changes whose row it is true of. A `-C` and its `+C` come together where it is true of either.
         */
        where?: string;
        /**
         * Globs of partition paths, repeated: the changes whose row is in a partition that matches one.
         */
        partitions?: Array<string>;
        /**
         * How changes are told. `two_event`: as they are stored, an update as `-C` directly followed by `+C`. `single_event`: an update as one `U` with `before`, at the offset of the `+C`. `retract`: an update as `-R` and `+A`. `upsert`: an update as the `+A` of the new row. `debezium`, `delta`: as those tell them.
         */
        form?: ChangeForm;
        /**
         * The schema under which rows are told, whichever they were written under: `latest`, or the id of one that the dataset had. Columns that a row does not have are null.
         */
        schema?: string;
        /**
         * `longpoll` waits for a change where there is none.
         */
        feed?: Feed;
        /**
         * Seconds that a longpoll waits.
         */
        timeout?: number;
    };
    url: '/datasets/{dataset}/changes';
};
export type ReadChangesErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * No accepted media type is available
     */
    406: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ReadChangesError = ReadChangesErrors[keyof ReadChangesErrors];
export type ReadChangesResponses = {
    /**
     * A page of changes, empty if there are none.
     */
    200: ChangesPage;
};
export type ReadChangesResponse = ReadChangesResponses[keyof ReadChangesResponses];
export type ReadCorrectionsData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * The first offset asked about.
         */
        from?: number;
        /**
         * The offset behind the last one; the head unless said.
         */
        to?: number;
        /**
         * Corrections on a page.
         */
        limit?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/datasets/{dataset}/changes/corrected';
};
export type ReadCorrectionsErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ReadCorrectionsError = ReadCorrectionsErrors[keyof ReadCorrectionsErrors];
export type ReadCorrectionsResponses = {
    /**
     * A page of corrections.
     */
    200: CorrectionsPage;
};
export type ReadCorrectionsResponse = ReadCorrectionsResponses[keyof ReadCorrectionsResponses];
export type FollowChangesData = {
    body?: never;
    headers?: {
        /**
         * The `id` of the last event that was handled; overrides `since` and `consumer`.
         */
        'Last-Event-ID'?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * The position to read from: how many changes were seen, 0 unless said. `earliest` is the first change that can still be read, `now` is the head.
         */
        since?: string;
        /**
         * The consumer whose position to read from, in the place of `since`.
         */
        consumer?: string;
        /**
         * The position to stop at: no change with this offset or a later one is read. One between a `-C` and its `+C` stops before both.
         */
        until?: number;
        /**
         * The columns to read, comma-separated or repeated; all unless said.
         */
        columns?: Array<string>;
        /**
         * A filter: the changes whose row it is true of. A `-C` and its `+C` come together where it is true of either.
         */
        where?: string;
        /**
         * Globs of partition paths, repeated: the changes whose row is in a partition that matches one.
         */
        partitions?: Array<string>;
        /**
         * How changes are told. `two_event`: as they are stored, an update as `-C` directly followed by `+C`. `single_event`: an update as one `U` with `before`, at the offset of the `+C`. `retract`: an update as `-R` and `+A`. `upsert`: an update as the `+A` of the new row. `debezium`, `delta`: as those tell them.
         */
        form?: ChangeForm;
        /**
         * The schema under which rows are told, whichever they were written under: `latest`, or the id of one that the dataset had. Columns that a row does not have are null.
         */
        schema?: string;
    };
    url: '/datasets/{dataset}/changes/events';
};
export type FollowChangesErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type FollowChangesError = FollowChangesErrors[keyof FollowChangesErrors];
export type FollowChangesResponses = {
    /**
     * Server-sent events `change`: the change as JSON, and as `id` the position behind it.
     */
    200: string;
    /**
     * Nothing is left before `until`: do not connect again.
     */
    204: void;
};
export type FollowChangesResponse = FollowChangesResponses[keyof FollowChangesResponses];
export type CreateCleanData = {
    body?: NewClean;
    headers?: {
        /**
         * Makes a retry safe: the same key with the same request gives the same job.
         */
        'Idempotency-Key'?: string;
        /**
         * `wait=N` waits up to N seconds (60 at most) for the job to end.
         */
        Prefer?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/cleans';
};
export type CreateCleanErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CreateCleanError = CreateCleanErrors[keyof CreateCleanErrors];
export type CreateCleanResponses = {
    /**
     * Committed within the wait that `Prefer` asked for.
     */
    200: Job;
    /**
     * Accepted: the write is durable and its job is on its way.
     */
    202: Job;
};
export type CreateCleanResponse = CreateCleanResponses[keyof CreateCleanResponses];
export type CreateClusteringData = {
    body?: NewClustering;
    headers?: {
        /**
         * Makes a retry safe: the same key with the same request gives the same job.
         */
        'Idempotency-Key'?: string;
        /**
         * `wait=N` waits up to N seconds (60 at most) for the job to end.
         */
        Prefer?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/clusterings';
};
export type CreateClusteringErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CreateClusteringError = CreateClusteringErrors[keyof CreateClusteringErrors];
export type CreateClusteringResponses = {
    /**
     * Committed within the wait that `Prefer` asked for.
     */
    200: Job;
    /**
     * Accepted: the write is durable and its job is on its way.
     */
    202: Job;
};
export type CreateClusteringResponse = CreateClusteringResponses[keyof CreateClusteringResponses];
export type CreateCompactionData = {
    body?: NewCompaction;
    headers?: {
        /**
         * Makes a retry safe: the same key with the same request gives the same job.
         */
        'Idempotency-Key'?: string;
        /**
         * `wait=N` waits up to N seconds (60 at most) for the job to end.
         */
        Prefer?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/compactions';
};
export type CreateCompactionErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CreateCompactionError = CreateCompactionErrors[keyof CreateCompactionErrors];
export type CreateCompactionResponses = {
    /**
     * Committed within the wait that `Prefer` asked for.
     */
    200: Job;
    /**
     * Accepted: the write is durable and its job is on its way.
     */
    202: Job;
};
export type CreateCompactionResponse = CreateCompactionResponses[keyof CreateCompactionResponses];
export type CreateComparisonData = {
    body: NewComparison;
    headers?: {
        /**
         * Makes a retry safe: the same key with the same request gives the same job.
         */
        'Idempotency-Key'?: string;
        /**
         * `wait=N` waits up to N seconds (60 at most) for the job to end.
         */
        Prefer?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/comparisons';
};
export type CreateComparisonErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CreateComparisonError = CreateComparisonErrors[keyof CreateComparisonErrors];
export type CreateComparisonResponses = {
    /**
     * Committed within the wait that `Prefer` asked for.
     */
    200: Job;
    /**
     * Accepted: the write is durable and its job is on its way.
     */
    202: Job;
};
export type CreateComparisonResponse = CreateComparisonResponses[keyof CreateComparisonResponses];
export type ListConsumersData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * Items on a page.
         */
        page_size?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/datasets/{dataset}/consumers';
};
export type ListConsumersErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ListConsumersError = ListConsumersErrors[keyof ListConsumersErrors];
export type ListConsumersResponses = {
    /**
     * A page, by name.
     */
    200: ConsumerPage;
};
export type ListConsumersResponse = ListConsumersResponses[keyof ListConsumersResponses];
export type DeleteConsumerData = {
    body?: never;
    headers?: {
        /**
         * The ETag that the consumer must still have.
         */
        'If-Match'?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
        /**
         * The name of a consumer.
         */
        name: string;
    };
    query?: never;
    url: '/datasets/{dataset}/consumers/{name}';
};
export type DeleteConsumerErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The resource is at another version
     */
    412: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type DeleteConsumerError = DeleteConsumerErrors[keyof DeleteConsumerErrors];
export type DeleteConsumerResponses = {
    /**
     * Ended; it keeps no changes any more.
     */
    204: void;
};
export type DeleteConsumerResponse = DeleteConsumerResponses[keyof DeleteConsumerResponses];
export type GetConsumerData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
        /**
         * The name of a consumer.
         */
        name: string;
    };
    query?: never;
    url: '/datasets/{dataset}/consumers/{name}';
};
export type GetConsumerErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type GetConsumerError = GetConsumerErrors[keyof GetConsumerErrors];
export type GetConsumerResponses = {
    /**
     * The consumer.
     */
    200: Consumer;
};
export type GetConsumerResponse = GetConsumerResponses[keyof GetConsumerResponses];
export type PutConsumerData = {
    body: ConsumerChange;
    headers?: {
        /**
         * The ETag that the consumer must still have; required where there is one.
         */
        'If-Match'?: string;
        /**
         * `*`: there must be none yet.
         */
        'If-None-Match'?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
        /**
         * The name of a consumer.
         */
        name: string;
    };
    query?: never;
    url: '/datasets/{dataset}/consumers/{name}';
};
export type PutConsumerErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The resource is at another version
     */
    412: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * If-Match is required
     */
    428: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type PutConsumerError = PutConsumerErrors[keyof PutConsumerErrors];
export type PutConsumerResponses = {
    /**
     * The consumer.
     */
    200: Consumer;
    /**
     * Made.
     */
    201: Consumer;
};
export type PutConsumerResponse = PutConsumerResponses[keyof PutConsumerResponses];
export type ReleaseConsumerData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
        /**
         * The name of a consumer.
         */
        name: string;
    };
    query: {
        /**
         * The token of the lease.
         */
        token: string;
    };
    url: '/datasets/{dataset}/consumers/{name}/lease';
};
export type ReleaseConsumerErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ReleaseConsumerError = ReleaseConsumerErrors[keyof ReleaseConsumerErrors];
export type ReleaseConsumerResponses = {
    /**
     * Any member may hold it now.
     */
    204: void;
};
export type ReleaseConsumerResponse = ReleaseConsumerResponses[keyof ReleaseConsumerResponses];
export type LeaseConsumerData = {
    body: NewLease;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
        /**
         * The name of a consumer.
         */
        name: string;
    };
    query?: never;
    url: '/datasets/{dataset}/consumers/{name}/lease';
};
export type LeaseConsumerErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type LeaseConsumerError = LeaseConsumerErrors[keyof LeaseConsumerErrors];
export type LeaseConsumerResponses = {
    /**
     * Held.
     */
    200: Lease;
};
export type LeaseConsumerResponse = LeaseConsumerResponses[keyof LeaseConsumerResponses];
export type ExplainKeysData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query: {
        /**
         * A JSON object of the key fields, such as `{"id": 1}`; repeated for more.
         */
        key: Array<string>;
    };
    url: '/datasets/{dataset}/explain-write';
};
export type ExplainKeysErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ExplainKeysError = ExplainKeysErrors[keyof ExplainKeysErrors];
export type ExplainKeysResponses = {
    /**
     * The file groups that the write would touch, were it to run now.
     */
    200: WriteExplanation;
};
export type ExplainKeysResponse = ExplainKeysResponses[keyof ExplainKeysResponses];
export type ExplainWriteData = {
    body: NewWrite;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/explain-write';
};
export type ExplainWriteErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ExplainWriteError = ExplainWriteErrors[keyof ExplainWriteErrors];
export type ExplainWriteResponses = {
    /**
     * The file groups that the write would touch, were it to run now.
     */
    200: WriteExplanation;
};
export type ExplainWriteResponse = ExplainWriteResponses[keyof ExplainWriteResponses];
export type ListExportsData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * Items on a page.
         */
        page_size?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/datasets/{dataset}/exports';
};
export type ListExportsErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ListExportsError = ListExportsErrors[keyof ListExportsErrors];
export type ListExportsResponses = {
    /**
     * A page, the latest first.
     */
    200: ExportPage;
};
export type ListExportsResponse = ListExportsResponses[keyof ListExportsResponses];
export type CreateExportData = {
    body: NewExport;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/exports';
};
export type CreateExportErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CreateExportError = CreateExportErrors[keyof CreateExportErrors];
export type CreateExportResponses = {
    /**
     * Accepted; its first run is on its way.
     */
    202: Export;
};
export type CreateExportResponse = CreateExportResponses[keyof CreateExportResponses];
export type ListFilesData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * The version to read; the latest unless said.
         */
        version?: number;
        /**
         * An RFC 3339 time: reads the last version committed by then.
         */
        as_of?: string;
        /**
         * The name of a tag or savepoint: reads the version that has it.
         */
        tag?: string;
        /**
         * The path of a partition: only its files.
         */
        partition?: string;
        /**
         * Only files of this kind.
         */
        kind?: FileKind;
        /**
         * Show what is known of the columns of each file.
         */
        statistics?: boolean;
        /**
         * Items on a page.
         */
        page_size?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/datasets/{dataset}/files';
};
export type ListFilesErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ListFilesError = ListFilesErrors[keyof ListFilesErrors];
export type ListFilesResponses = {
    /**
     * A page of files.
     */
    200: FilePage;
};
export type ListFilesResponse = ListFilesResponses[keyof ListFilesResponses];
export type GetMetastoreReportData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/metastore';
};
export type GetMetastoreReportErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type GetMetastoreReportError = GetMetastoreReportErrors[keyof GetMetastoreReportErrors];
export type GetMetastoreReportResponses = {
    /**
     * The last report.
     */
    200: MetastoreReport;
};
export type GetMetastoreReportResponse = GetMetastoreReportResponses[keyof GetMetastoreReportResponses];
export type ListPartitionsData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * The version to read; the latest unless said.
         */
        version?: number;
        /**
         * An RFC 3339 time: reads the last version committed by then.
         */
        as_of?: string;
        /**
         * The name of a tag or savepoint: reads the version that has it.
         */
        tag?: string;
        /**
         * Items on a page.
         */
        page_size?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/datasets/{dataset}/partitions';
};
export type ListPartitionsErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ListPartitionsError = ListPartitionsErrors[keyof ListPartitionsErrors];
export type ListPartitionsResponses = {
    /**
     * A page of partitions.
     */
    200: PartitionPage;
};
export type ListPartitionsResponse = ListPartitionsResponses[keyof ListPartitionsResponses];
export type EndPartitionsData = {
    body: EndedPartitions;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/partitions/done';
};
export type EndPartitionsErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type EndPartitionsError = EndPartitionsErrors[keyof EndPartitionsErrors];
export type EndPartitionsResponses = {
    /**
     * Done.
     */
    200: PartitionMarkList;
};
export type EndPartitionsResponse = EndPartitionsResponses[keyof EndPartitionsResponses];
export type ReadPartitionEventsData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * The number of the first event to tell.
         */
        since?: number;
        /**
         * How many events to tell at most.
         */
        limit?: number;
    };
    url: '/datasets/{dataset}/partitions/events';
};
export type ReadPartitionEventsErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ReadPartitionEventsError = ReadPartitionEventsErrors[keyof ReadPartitionEventsErrors];
export type ReadPartitionEventsResponses = {
    /**
     * Events.
     */
    200: PartitionEventPage;
};
export type ReadPartitionEventsResponse = ReadPartitionEventsResponses[keyof ReadPartitionEventsResponses];
export type DiscardQuarantineData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query: {
        /**
         * The id of the job whose records to discard.
         */
        job: string;
    };
    url: '/datasets/{dataset}/quarantine';
};
export type DiscardQuarantineErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type DiscardQuarantineError = DiscardQuarantineErrors[keyof DiscardQuarantineErrors];
export type DiscardQuarantineResponses = {
    /**
     * Discarded.
     */
    204: void;
};
export type DiscardQuarantineResponse = DiscardQuarantineResponses[keyof DiscardQuarantineResponses];
export type ReadQuarantineData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * The id of a job: its records only.
         */
        job?: string;
        /**
         * Items on a page.
         */
        page_size?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/datasets/{dataset}/quarantine';
};
export type ReadQuarantineErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ReadQuarantineError = ReadQuarantineErrors[keyof ReadQuarantineErrors];
export type ReadQuarantineResponses = {
    /**
     * A page of bad records.
     */
    200: QuarantinePage;
};
export type ReadQuarantineResponse = ReadQuarantineResponses[keyof ReadQuarantineResponses];
export type RedriveQuarantineData = {
    body: NewRedrive;
    headers?: {
        /**
         * Makes a retry safe: the same key with the same request gives the same job.
         */
        'Idempotency-Key'?: string;
        /**
         * `wait=N` waits up to N seconds (60 at most) for the job to end.
         */
        Prefer?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/quarantine/redrive';
};
export type RedriveQuarantineErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
    /**
     * The storage is full
     */
    507: Problem;
};
export type RedriveQuarantineError = RedriveQuarantineErrors[keyof RedriveQuarantineErrors];
export type RedriveQuarantineResponses = {
    /**
     * Committed within the wait that `Prefer` asked for.
     */
    200: Job;
    /**
     * Accepted: the write is durable and its job is on its way.
     */
    202: Job;
};
export type RedriveQuarantineResponse = RedriveQuarantineResponses[keyof RedriveQuarantineResponses];
export type CreateReadData = {
    body?: ReadRequest;
    headers?: {
        /**
         * Makes a retry safe: the same key with the same request gives the same job.
         */
        'Idempotency-Key'?: string;
        /**
         * `wait=N` waits up to N seconds (60 at most) for the job to end.
         */
        Prefer?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/reads';
};
export type CreateReadErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CreateReadError = CreateReadErrors[keyof CreateReadErrors];
export type CreateReadResponses = {
    /**
     * Committed within the wait that `Prefer` asked for.
     */
    200: Job;
    /**
     * Accepted: the write is durable and its job is on its way.
     */
    202: Job;
};
export type CreateReadResponse = CreateReadResponses[keyof CreateReadResponses];
export type CreateRestoreData = {
    body: NewRestore;
    headers?: {
        /**
         * Makes a retry safe: the same key with the same request gives the same job.
         */
        'Idempotency-Key'?: string;
        /**
         * `wait=N` waits up to N seconds (60 at most) for the job to end.
         */
        Prefer?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/restores';
};
export type CreateRestoreErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CreateRestoreError = CreateRestoreErrors[keyof CreateRestoreErrors];
export type CreateRestoreResponses = {
    /**
     * Committed within the wait that `Prefer` asked for.
     */
    200: Job;
    /**
     * Accepted: the write is durable and its job is on its way.
     */
    202: Job;
};
export type CreateRestoreResponse = CreateRestoreResponses[keyof CreateRestoreResponses];
export type CreateRollbackData = {
    body?: NewRollback;
    headers?: {
        /**
         * Makes a retry safe: the same key with the same request gives the same job.
         */
        'Idempotency-Key'?: string;
        /**
         * `wait=N` waits up to N seconds (60 at most) for the job to end.
         */
        Prefer?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/rollbacks';
};
export type CreateRollbackErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CreateRollbackError = CreateRollbackErrors[keyof CreateRollbackErrors];
export type CreateRollbackResponses = {
    /**
     * Committed within the wait that `Prefer` asked for.
     */
    200: Job;
    /**
     * Accepted: the write is durable and its job is on its way.
     */
    202: Job;
};
export type CreateRollbackResponse = CreateRollbackResponses[keyof CreateRollbackResponses];
export type ReadRowsData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * `read_optimized` reads base files only: faster where merge_on_read keeps logs, but without what is in them until a compaction.
         */
        query_type?: QueryType;
        /**
         * The version to read; the latest unless said.
         */
        version?: number;
        /**
         * An RFC 3339 time: reads the last version committed by then.
         */
        as_of?: string;
        /**
         * The name of a tag or savepoint: reads the version that has it.
         */
        tag?: string;
        /**
         * The columns to read, comma-separated or repeated; all unless said.
         */
        columns?: Array<string>;
        /**
         * A filter: the rows for which it is true.
         */
        where?: string;
        /**
         * Globs of partition paths, repeated: the rows of partitions that match one.
         */
        partitions?: Array<string>;
        /**
         * Show the five meta columns behind the others.
         */
        meta?: boolean;
        /**
         * Show beside each row of an earlier version what has taken it back since: the columns `_hw_corrected_by` (an offset) and `_hw_corrected_version`, null where nothing has.
         */
        corrected_since?: boolean;
        /**
         * Rows on a page, at most.
         */
        limit?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/datasets/{dataset}/rows';
};
export type ReadRowsErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * No accepted media type is available
     */
    406: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ReadRowsError = ReadRowsErrors[keyof ReadRowsErrors];
export type ReadRowsResponses = {
    /**
     * A page of rows, in no particular order but always the same.
     */
    200: RowsPage;
};
export type ReadRowsResponse = ReadRowsResponses[keyof ReadRowsResponses];
export type ListSavepointsData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * Items on a page.
         */
        page_size?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/datasets/{dataset}/savepoints';
};
export type ListSavepointsErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ListSavepointsError = ListSavepointsErrors[keyof ListSavepointsErrors];
export type ListSavepointsResponses = {
    /**
     * A page, by name.
     */
    200: NamedVersionPage;
};
export type ListSavepointsResponse = ListSavepointsResponses[keyof ListSavepointsResponses];
export type CreateSavepointData = {
    body: NewNamedVersion;
    headers?: {
        /**
         * Makes a retry safe: the same key with the same request gives the same job.
         */
        'Idempotency-Key'?: string;
        /**
         * `wait=N` waits up to N seconds (60 at most) for the job to end.
         */
        Prefer?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/savepoints';
};
export type CreateSavepointErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CreateSavepointError = CreateSavepointErrors[keyof CreateSavepointErrors];
export type CreateSavepointResponses = {
    /**
     * Committed within the wait that `Prefer` asked for.
     */
    200: Job;
    /**
     * Accepted: the write is durable and its job is on its way.
     */
    202: Job;
};
export type CreateSavepointResponse = CreateSavepointResponses[keyof CreateSavepointResponses];
export type DeleteSavepointData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
        /**
         * The name of a savepoint.
         */
        name: string;
    };
    query?: never;
    url: '/datasets/{dataset}/savepoints/{name}';
};
export type DeleteSavepointErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type DeleteSavepointError = DeleteSavepointErrors[keyof DeleteSavepointErrors];
export type DeleteSavepointResponses = {
    /**
     * The name is free again.
     */
    204: void;
};
export type DeleteSavepointResponse = DeleteSavepointResponses[keyof DeleteSavepointResponses];
export type GetSavepointData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
        /**
         * The name of a savepoint.
         */
        name: string;
    };
    query?: never;
    url: '/datasets/{dataset}/savepoints/{name}';
};
export type GetSavepointErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type GetSavepointError = GetSavepointErrors[keyof GetSavepointErrors];
export type GetSavepointResponses = {
    /**
     * The version.
     */
    200: NamedVersion;
};
export type GetSavepointResponse = GetSavepointResponses[keyof GetSavepointResponses];
export type GetDatasetSchemaData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * One that the dataset had; the latest unless said.
         */
        id?: number;
    };
    url: '/datasets/{dataset}/schema';
};
export type GetDatasetSchemaErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type GetDatasetSchemaError = GetDatasetSchemaErrors[keyof GetDatasetSchemaErrors];
export type GetDatasetSchemaResponses = {
    /**
     * The schema.
     */
    200: Schema;
};
export type GetDatasetSchemaResponse = GetDatasetSchemaResponses[keyof GetDatasetSchemaResponses];
export type ListDatasetSchemasData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * Items on a page.
         */
        page_size?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/datasets/{dataset}/schemas';
};
export type ListDatasetSchemasErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ListDatasetSchemasError = ListDatasetSchemasErrors[keyof ListDatasetSchemasErrors];
export type ListDatasetSchemasResponses = {
    /**
     * A page, the latest first.
     */
    200: SchemaPage;
};
export type ListDatasetSchemasResponse = ListDatasetSchemasResponses[keyof ListDatasetSchemasResponses];
export type ReadStatisticsData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * Columns to sum up as well, comma-separated or repeated: every file is looked at for them.
         */
        columns?: Array<string>;
    };
    url: '/datasets/{dataset}/statistics';
};
export type ReadStatisticsErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ReadStatisticsError = ReadStatisticsErrors[keyof ReadStatisticsErrors];
export type ReadStatisticsResponses = {
    /**
     * The table as it is now.
     */
    200: Statistics;
};
export type ReadStatisticsResponse = ReadStatisticsResponses[keyof ReadStatisticsResponses];
export type ListTagsData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * Items on a page.
         */
        page_size?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/datasets/{dataset}/tags';
};
export type ListTagsErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ListTagsError = ListTagsErrors[keyof ListTagsErrors];
export type ListTagsResponses = {
    /**
     * A page, by name.
     */
    200: NamedVersionPage;
};
export type ListTagsResponse = ListTagsResponses[keyof ListTagsResponses];
export type CreateTagData = {
    body: NewNamedVersion;
    headers?: {
        /**
         * Makes a retry safe: the same key with the same request gives the same job.
         */
        'Idempotency-Key'?: string;
        /**
         * `wait=N` waits up to N seconds (60 at most) for the job to end.
         */
        Prefer?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/tags';
};
export type CreateTagErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CreateTagError = CreateTagErrors[keyof CreateTagErrors];
export type CreateTagResponses = {
    /**
     * Committed within the wait that `Prefer` asked for.
     */
    200: Job;
    /**
     * Accepted: the write is durable and its job is on its way.
     */
    202: Job;
};
export type CreateTagResponse = CreateTagResponses[keyof CreateTagResponses];
export type DeleteTagData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
        /**
         * The name of a tag.
         */
        name: string;
    };
    query?: never;
    url: '/datasets/{dataset}/tags/{name}';
};
export type DeleteTagErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type DeleteTagError = DeleteTagErrors[keyof DeleteTagErrors];
export type DeleteTagResponses = {
    /**
     * The name is free again.
     */
    204: void;
};
export type DeleteTagResponse = DeleteTagResponses[keyof DeleteTagResponses];
export type GetTagData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
        /**
         * The name of a tag.
         */
        name: string;
    };
    query?: never;
    url: '/datasets/{dataset}/tags/{name}';
};
export type GetTagErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type GetTagError = GetTagErrors[keyof GetTagErrors];
export type GetTagResponses = {
    /**
     * The version.
     */
    200: NamedVersion;
};
export type GetTagResponse = GetTagResponses[keyof GetTagResponses];
export type ReadTimelineData = {
    body?: never;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * Only instants that do this; repeated, one of these.
         */
        action?: Array<Action>;
        /**
         * Only instants in this state; repeated, in one of these.
         */
        state?: Array<InstantState>;
        /**
         * An RFC 3339 time: only what was requested then or later.
         */
        since?: string;
        /**
         * An RFC 3339 time: only what was requested before.
         */
        until?: string;
        /**
         * Items on a page.
         */
        page_size?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/datasets/{dataset}/timeline';
};
export type ReadTimelineErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ReadTimelineError = ReadTimelineErrors[keyof ReadTimelineErrors];
export type ReadTimelineResponses = {
    /**
     * A page of instants.
     */
    200: InstantPage;
};
export type ReadTimelineResponse = ReadTimelineResponses[keyof ReadTimelineResponses];
export type CreateUploadData = {
    body: Blob | File;
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/uploads';
};
export type CreateUploadErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
    /**
     * The storage is full
     */
    507: Problem;
};
export type CreateUploadError = CreateUploadErrors[keyof CreateUploadErrors];
export type CreateUploadResponses = {
    /**
     * Stored.
     */
    201: Upload;
};
export type CreateUploadResponse = CreateUploadResponses[keyof CreateUploadResponses];
export type VerifyDatasetData = {
    body?: NewVerification;
    headers?: {
        /**
         * Makes a retry safe: the same key with the same request gives the same job.
         */
        'Idempotency-Key'?: string;
        /**
         * `wait=N` waits up to N seconds (60 at most) for the job to end.
         */
        Prefer?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: never;
    url: '/datasets/{dataset}/verify';
};
export type VerifyDatasetErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type VerifyDatasetError = VerifyDatasetErrors[keyof VerifyDatasetErrors];
export type VerifyDatasetResponses = {
    /**
     * Committed within the wait that `Prefer` asked for.
     */
    200: Job;
    /**
     * Accepted: the write is durable and its job is on its way.
     */
    202: Job;
};
export type VerifyDatasetResponse = VerifyDatasetResponses[keyof VerifyDatasetResponses];
export type CreateWriteData = {
    body: NewWrite;
    headers?: {
        /**
         * Makes a retry safe: the same key with the same request gives the same job.
         */
        'Idempotency-Key'?: string;
        /**
         * `wait=N` waits up to N seconds (60 at most) for the job to end.
         */
        Prefer?: string;
    };
    path: {
        /**
         * The id or the name of a dataset.
         */
        dataset: string;
    };
    query?: {
        /**
         * For raw bodies only: what to do with the rows; `upsert` unless said, `insert` on an append-only dataset. In a JSON body it is a member, as the other options are.
         */
        operation?: Operation;
        /**
         * What an insert, upsert or bulk_insert does about data that are there.
         */
        mode?: SaveMode;
        /**
         * What an overwrite replaces; `table` unless said.
         */
        overwrite_scope?: OverwriteScope;
        /**
         * The filter of scope `filter`.
         */
        overwrite_where?: string;
        /**
         * What becomes of the write if it has bad records.
         */
        on_error?: OnError;
        /**
         * Columns that are new are added to the dataset.
         */
        merge_schema?: boolean;
        /**
         * With merge_schema: types may also change by a cast.
         */
        explicit_cast?: boolean;
        /**
         * Rows of an insert whose key is there are left out.
         */
        drop_duplicates?: boolean;
        /**
         * The write fails unless the dataset is at this version.
         */
        expected_version?: number;
        /**
         * The stream that a batch is of.
         */
        writer_id?: string;
        /**
         * The number of the batch: a batch commits once.
         */
        batch_id?: number;
    };
    url: '/datasets/{dataset}/writes';
};
export type CreateWriteErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
    /**
     * The storage is full
     */
    507: Problem;
};
export type CreateWriteError = CreateWriteErrors[keyof CreateWriteErrors];
export type CreateWriteResponses = {
    /**
     * Committed within the wait that `Prefer` asked for.
     */
    200: Job;
    /**
     * Accepted: the write is durable and its job is on its way.
     */
    202: Job;
};
export type CreateWriteResponse = CreateWriteResponses[keyof CreateWriteResponses];
export type DeleteExportData = {
    body?: never;
    path: {
        /**
         * The id of an export.
         */
        export: string;
    };
    query?: never;
    url: '/exports/{export}';
};
export type DeleteExportErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type DeleteExportError = DeleteExportErrors[keyof DeleteExportErrors];
export type DeleteExportResponses = {
    /**
     * Ended, and its runs and files forgotten.
     */
    204: void;
};
export type DeleteExportResponse = DeleteExportResponses[keyof DeleteExportResponses];
export type GetExportData = {
    body?: never;
    path: {
        /**
         * The id of an export.
         */
        export: string;
    };
    query?: never;
    url: '/exports/{export}';
};
export type GetExportErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type GetExportError = GetExportErrors[keyof GetExportErrors];
export type GetExportResponses = {
    /**
     * The export.
     */
    200: Export;
};
export type GetExportResponse = GetExportResponses[keyof GetExportResponses];
export type ChangeExportData = {
    body: ExportSwitch;
    headers?: {
        /**
         * The ETag that the export must still have; required.
         */
        'If-Match'?: string;
    };
    path: {
        /**
         * The id of an export.
         */
        export: string;
    };
    query?: never;
    url: '/exports/{export}';
};
export type ChangeExportErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The resource is at another version
     */
    412: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * If-Match is required
     */
    428: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ChangeExportError = ChangeExportErrors[keyof ChangeExportErrors];
export type ChangeExportResponses = {
    /**
     * Changed.
     */
    200: Export;
};
export type ChangeExportResponse = ChangeExportResponses[keyof ChangeExportResponses];
export type ListExportRunsData = {
    body?: never;
    path: {
        /**
         * The id of an export.
         */
        export: string;
    };
    query?: {
        /**
         * Items on a page.
         */
        page_size?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/exports/{export}/runs';
};
export type ListExportRunsErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ListExportRunsError = ListExportRunsErrors[keyof ListExportRunsErrors];
export type ListExportRunsResponses = {
    /**
     * A page, the latest first.
     */
    200: ExportRunPage;
};
export type ListExportRunsResponse = ListExportRunsResponses[keyof ListExportRunsResponses];
export type StartExportRunData = {
    body?: never;
    headers?: {
        /**
         * Makes a retry safe: the same key with the same request gives the same run.
         */
        'Idempotency-Key'?: string;
    };
    path: {
        /**
         * The id of an export.
         */
        export: string;
    };
    query?: never;
    url: '/exports/{export}/runs';
};
export type StartExportRunErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type StartExportRunError = StartExportRunErrors[keyof StartExportRunErrors];
export type StartExportRunResponses = {
    /**
     * On its way, unless it has ended already.
     */
    202: ExportRunSummary;
};
export type StartExportRunResponse = StartExportRunResponses[keyof StartExportRunResponses];
export type GetExportRunData = {
    body?: never;
    path: {
        /**
         * The id of an export.
         */
        export: string;
        /**
         * The number of a run, from 1.
         */
        number: number;
    };
    query?: never;
    url: '/exports/{export}/runs/{number}';
};
export type GetExportRunErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type GetExportRunError = GetExportRunErrors[keyof GetExportRunErrors];
export type GetExportRunResponses = {
    /**
     * The run.
     */
    200: ExportRun;
};
export type GetExportRunResponse = GetExportRunResponses[keyof GetExportRunResponses];
export type DownloadExportFileData = {
    body?: never;
    headers?: {
        /**
         * `bytes=first-last`, `bytes=first-` or `bytes=-count`: a part of the file.
         */
        Range?: string;
        /**
         * The ETag of the file that the range is of; of another one comes the whole.
         */
        'If-Range'?: string;
    };
    path: {
        /**
         * The id of an export.
         */
        export: string;
        /**
         * The number of a run, from 1.
         */
        number: number;
        /**
         * The name of a file of a run.
         */
        name: string;
    };
    query?: never;
    url: '/exports/{export}/runs/{number}/files/{name}';
};
export type DownloadExportFileErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The file has no such part
     */
    416: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type DownloadExportFileError = DownloadExportFileErrors[keyof DownloadExportFileErrors];
export type DownloadExportFileResponses = {
    /**
     * The file.
     */
    200: string;
    /**
     * The part that was asked for.
     */
    206: string;
};
export type DownloadExportFileResponse = DownloadExportFileResponses[keyof DownloadExportFileResponses];
export type CheckExportFileData = {
    body?: never;
    path: {
        /**
         * The id of an export.
         */
        export: string;
        /**
         * The number of a run, from 1.
         */
        number: number;
        /**
         * The name of a file of a run.
         */
        name: string;
    };
    query?: never;
    url: '/exports/{export}/runs/{number}/files/{name}';
};
export type CheckExportFileErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CheckExportFileError = CheckExportFileErrors[keyof CheckExportFileErrors];
export type CheckExportFileResponses = {
    /**
     * It is there.
     */
    200: unknown;
};
export type GetLivenessData = {
    body?: never;
    path?: never;
    query?: never;
    url: '/health/live';
};
export type GetLivenessErrors = {
    /**
     * The service failed
     */
    500: Problem;
};
export type GetLivenessError = GetLivenessErrors[keyof GetLivenessErrors];
export type GetLivenessResponses = {
    /**
     * It is.
     */
    200: Live;
};
export type GetLivenessResponse = GetLivenessResponses[keyof GetLivenessResponses];
export type GetReadinessData = {
    body?: never;
    path?: never;
    query?: never;
    url: '/health/ready';
};
export type GetReadinessErrors = {
    /**
     * The service failed
     */
    500: Problem;
    /**
     * Not ready; the checks say why.
     */
    503: Ready;
};
export type GetReadinessError = GetReadinessErrors[keyof GetReadinessErrors];
export type GetReadinessResponses = {
    /**
     * Ready.
     */
    200: Ready;
};
export type GetReadinessResponse = GetReadinessResponses[keyof GetReadinessResponses];
export type GetJobData = {
    body?: never;
    path: {
        /**
         * The id of a job.
         */
        job: string;
    };
    query?: {
        /**
         * Seconds to wait for the job to end before answering.
         */
        wait?: number;
    };
    url: '/jobs/{job}';
};
export type GetJobErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type GetJobError = GetJobErrors[keyof GetJobErrors];
export type GetJobResponses = {
    /**
     * The job as it stands.
     */
    200: Job;
};
export type GetJobResponse = GetJobResponses[keyof GetJobResponses];
export type CancelJobData = {
    body?: never;
    path: {
        /**
         * The id of a job.
         */
        job: string;
    };
    query?: never;
    url: '/jobs/{job}/cancel';
};
export type CancelJobErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CancelJobError = CancelJobErrors[keyof CancelJobErrors];
export type CancelJobResponses = {
    /**
     * Cancelled.
     */
    200: Job;
};
export type CancelJobResponse = CancelJobResponses[keyof CancelJobResponses];
export type FollowJobData = {
    body?: never;
    path: {
        /**
         * The id of a job.
         */
        job: string;
    };
    query?: never;
    url: '/jobs/{job}/events';
};
export type FollowJobErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type FollowJobError = FollowJobErrors[keyof FollowJobErrors];
export type FollowJobResponses = {
    /**
     * Server-sent events `state`, each with the job.
     */
    200: string;
};
export type FollowJobResponse = FollowJobResponses[keyof FollowJobResponses];
export type GetResultData = {
    body?: never;
    headers?: {
        /**
         * `wait=N` waits up to N seconds (60 at most) for the job to end.
         */
        Prefer?: string;
    };
    path: {
        /**
         * The id of a job.
         */
        job: string;
    };
    query?: never;
    url: '/jobs/{job}/result';
};
export type GetResultErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type GetResultError = GetResultErrors[keyof GetResultErrors];
export type GetResultResponses = {
    /**
     * The rows, or links to the files that have them.
     */
    200: ReadOutput;
};
export type GetResultResponse = GetResultResponses[keyof GetResultResponses];
export type DownloadResultFileData = {
    body?: never;
    headers?: {
        /**
         * `bytes=first-last`, `bytes=first-` or `bytes=-count`: a part of the file.
         */
        Range?: string;
        /**
         * The ETag of the file that the range is of; of another one comes the whole.
         */
        'If-Range'?: string;
    };
    path: {
        /**
         * The id of a job.
         */
        job: string;
        /**
         * The name of a file of the result.
         */
        name: string;
    };
    query?: never;
    url: '/jobs/{job}/result/files/{name}';
};
export type DownloadResultFileErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The file has no such part
     */
    416: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type DownloadResultFileError = DownloadResultFileErrors[keyof DownloadResultFileErrors];
export type DownloadResultFileResponses = {
    /**
     * The file.
     */
    200: string;
    /**
     * The part that was asked for.
     */
    206: string;
};
export type DownloadResultFileResponse = DownloadResultFileResponses[keyof DownloadResultFileResponses];
export type CheckResultFileData = {
    body?: never;
    path: {
        /**
         * The id of a job.
         */
        job: string;
        /**
         * The name of a file of the result.
         */
        name: string;
    };
    query?: never;
    url: '/jobs/{job}/result/files/{name}';
};
export type CheckResultFileErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CheckResultFileError = CheckResultFileErrors[keyof CheckResultFileErrors];
export type CheckResultFileResponses = {
    /**
     * It is there.
     */
    200: unknown;
};
export type CreateTransactionData = {
    body: NewTransaction;
    headers?: {
        /**
         * Makes a retry safe: the same key with the same request gives the same transaction.
         */
        'Idempotency-Key'?: string;
        /**
         * `wait=N` waits up to N seconds (60 at most) for the transaction to end.
         */
        Prefer?: string;
    };
    path?: never;
    query?: never;
    url: '/transactions';
};
export type CreateTransactionErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
    /**
     * The storage is full
     */
    507: Problem;
};
export type CreateTransactionError = CreateTransactionErrors[keyof CreateTransactionErrors];
export type CreateTransactionResponses = {
    /**
     * Committed within the wait that `Prefer` asked for.
     */
    200: Transaction;
    /**
     * Accepted: all writes are durable and on their way.
     */
    202: Transaction;
};
export type CreateTransactionResponse = CreateTransactionResponses[keyof CreateTransactionResponses];
export type GetTransactionData = {
    body?: never;
    path: {
        /**
         * The id of a transaction.
         */
        transaction: string;
    };
    query?: {
        /**
         * Seconds to wait for the transaction to end before answering.
         */
        wait?: number;
    };
    url: '/transactions/{transaction}';
};
export type GetTransactionErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type GetTransactionError = GetTransactionErrors[keyof GetTransactionErrors];
export type GetTransactionResponses = {
    /**
     * The transaction as it stands.
     */
    200: Transaction;
};
export type GetTransactionResponse = GetTransactionResponses[keyof GetTransactionResponses];
export type ListViewsData = {
    body?: never;
    path?: never;
    query?: {
        /**
         * Items on a page.
         */
        page_size?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/views';
};
export type ListViewsErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ListViewsError = ListViewsErrors[keyof ListViewsErrors];
export type ListViewsResponses = {
    /**
     * A page, by name.
     */
    200: ViewPage;
};
export type ListViewsResponse = ListViewsResponses[keyof ListViewsResponses];
export type CreateViewData = {
    body: NewView;
    path?: never;
    query?: never;
    url: '/views';
};
export type CreateViewErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CreateViewError = CreateViewErrors[keyof CreateViewErrors];
export type CreateViewResponses = {
    /**
     * Registered, its first refresh queued.
     */
    201: View;
};
export type CreateViewResponse = CreateViewResponses[keyof CreateViewResponses];
export type DeleteViewData = {
    body?: never;
    path: {
        /**
         * The id or the name of a view.
         */
        view: string;
    };
    query?: never;
    url: '/views/{view}';
};
export type DeleteViewErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type DeleteViewError = DeleteViewErrors[keyof DeleteViewErrors];
export type DeleteViewResponses = {
    /**
     * Ended; its name is free at once.
     */
    204: void;
};
export type DeleteViewResponse = DeleteViewResponses[keyof DeleteViewResponses];
export type GetViewData = {
    body?: never;
    path: {
        /**
         * The id or the name of a view.
         */
        view: string;
    };
    query?: never;
    url: '/views/{view}';
};
export type GetViewErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type GetViewError = GetViewErrors[keyof GetViewErrors];
export type GetViewResponses = {
    /**
     * The view.
     */
    200: View;
};
export type GetViewResponse = GetViewResponses[keyof GetViewResponses];
export type ChangeViewData = {
    body: ViewPatch;
    headers?: {
        /**
         * The ETag that the view must still have; required.
         */
        'If-Match'?: string;
    };
    path: {
        /**
         * The id or the name of a view.
         */
        view: string;
    };
    query?: never;
    url: '/views/{view}';
};
export type ChangeViewErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The resource is at another version
     */
    412: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * If-Match is required
     */
    428: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ChangeViewError = ChangeViewErrors[keyof ChangeViewErrors];
export type ChangeViewResponses = {
    /**
     * Changed.
     */
    200: View;
};
export type ChangeViewResponse = ChangeViewResponses[keyof ChangeViewResponses];
export type RefreshViewData = {
    body?: never;
    headers?: {
        /**
         * `wait=N` waits up to N seconds (60 at most) for the job to end.
         */
        Prefer?: string;
    };
    path: {
        /**
         * The id or the name of a view.
         */
        view: string;
    };
    query?: never;
    url: '/views/{view}/refresh';
};
export type RefreshViewErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type RefreshViewError = RefreshViewErrors[keyof RefreshViewErrors];
export type RefreshViewResponses = {
    /**
     * Committed within the wait that `Prefer` asked for.
     */
    200: Job;
    /**
     * Accepted: the write is durable and its job is on its way.
     */
    202: Job;
};
export type RefreshViewResponse = RefreshViewResponses[keyof RefreshViewResponses];
export type ListWebhooksData = {
    body?: never;
    path?: never;
    query?: {
        /**
         * The id or the name of a dataset: its webhooks only.
         */
        dataset?: string;
        /**
         * Items on a page.
         */
        page_size?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/webhooks';
};
export type ListWebhooksErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ListWebhooksError = ListWebhooksErrors[keyof ListWebhooksErrors];
export type ListWebhooksResponses = {
    /**
     * A page, the newest first.
     */
    200: WebhookPage;
};
export type ListWebhooksResponse = ListWebhooksResponses[keyof ListWebhooksResponses];
export type CreateWebhookData = {
    body: NewWebhook;
    path?: never;
    query?: never;
    url: '/webhooks';
};
export type CreateWebhookErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type CreateWebhookError = CreateWebhookErrors[keyof CreateWebhookErrors];
export type CreateWebhookResponses = {
    /**
     * Registered.
     */
    201: WebhookWithSecret;
};
export type CreateWebhookResponse = CreateWebhookResponses[keyof CreateWebhookResponses];
export type DeleteWebhookData = {
    body?: never;
    headers?: {
        /**
         * The ETag that the webhook must still have.
         */
        'If-Match'?: string;
    };
    path: {
        /**
         * The id of a webhook.
         */
        webhook: string;
    };
    query?: never;
    url: '/webhooks/{webhook}';
};
export type DeleteWebhookErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The resource is at another version
     */
    412: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type DeleteWebhookError = DeleteWebhookErrors[keyof DeleteWebhookErrors];
export type DeleteWebhookResponses = {
    /**
     * Ended.
     */
    204: void;
};
export type DeleteWebhookResponse = DeleteWebhookResponses[keyof DeleteWebhookResponses];
export type GetWebhookData = {
    body?: never;
    path: {
        /**
         * The id of a webhook.
         */
        webhook: string;
    };
    query?: never;
    url: '/webhooks/{webhook}';
};
export type GetWebhookErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type GetWebhookError = GetWebhookErrors[keyof GetWebhookErrors];
export type GetWebhookResponses = {
    /**
     * The webhook.
     */
    200: Webhook;
};
export type GetWebhookResponse = GetWebhookResponses[keyof GetWebhookResponses];
export type ChangeWebhookData = {
    body: WebhookPatch;
    headers?: {
        /**
         * The ETag that the webhook must still have; required.
         */
        'If-Match'?: string;
    };
    path: {
        /**
         * The id of a webhook.
         */
        webhook: string;
    };
    query?: never;
    url: '/webhooks/{webhook}';
};
export type ChangeWebhookErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * It conflicts with what is there
     */
    409: Problem;
    /**
     * It is not kept any more
     */
    410: Problem;
    /**
     * The resource is at another version
     */
    412: Problem;
    /**
     * The body is too large; the limit is in the answer
     */
    413: Problem;
    /**
     * The media type is not read here
     */
    415: Problem;
    /**
     * The content does not fit
     */
    422: Problem;
    /**
     * If-Match is required
     */
    428: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ChangeWebhookError = ChangeWebhookErrors[keyof ChangeWebhookErrors];
export type ChangeWebhookResponses = {
    /**
     * Changed.
     */
    200: Webhook;
};
export type ChangeWebhookResponse = ChangeWebhookResponses[keyof ChangeWebhookResponses];
export type ListWebhookDeliveriesData = {
    body?: never;
    path: {
        /**
         * The id of a webhook.
         */
        webhook: string;
    };
    query?: {
        /**
         * Those in this state only.
         */
        state?: DeliveryState;
        /**
         * Items on a page.
         */
        page_size?: number;
        /**
         * `next_page_token` of the page before; absent for the first page.
         */
        page_token?: string;
    };
    url: '/webhooks/{webhook}/deliveries';
};
export type ListWebhookDeliveriesErrors = {
    /**
     * The request is not valid
     */
    400: Problem;
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type ListWebhookDeliveriesError = ListWebhookDeliveriesErrors[keyof ListWebhookDeliveriesErrors];
export type ListWebhookDeliveriesResponses = {
    /**
     * A page, the newest first.
     */
    200: DeliveryPage;
};
export type ListWebhookDeliveriesResponse = ListWebhookDeliveriesResponses[keyof ListWebhookDeliveriesResponses];
export type GetWebhookDeliveryData = {
    body?: never;
    path: {
        /**
         * The id of a webhook.
         */
        webhook: string;
        /**
         * The id of a message.
         */
        delivery: string;
    };
    query?: never;
    url: '/webhooks/{webhook}/deliveries/{delivery}';
};
export type GetWebhookDeliveryErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type GetWebhookDeliveryError = GetWebhookDeliveryErrors[keyof GetWebhookDeliveryErrors];
export type GetWebhookDeliveryResponses = {
    /**
     * The message.
     */
    200: Delivery;
};
export type GetWebhookDeliveryResponse = GetWebhookDeliveryResponses[keyof GetWebhookDeliveryResponses];
export type RedeliverWebhookDeliveryData = {
    body?: never;
    path: {
        /**
         * The id of a webhook.
         */
        webhook: string;
        /**
         * The id of a message.
         */
        delivery: string;
    };
    query?: never;
    url: '/webhooks/{webhook}/deliveries/{delivery}/redeliver';
};
export type RedeliverWebhookDeliveryErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type RedeliverWebhookDeliveryError = RedeliverWebhookDeliveryErrors[keyof RedeliverWebhookDeliveryErrors];
export type RedeliverWebhookDeliveryResponses = {
    /**
     * It is sent again.
     */
    202: Delivery;
};
export type RedeliverWebhookDeliveryResponse = RedeliverWebhookDeliveryResponses[keyof RedeliverWebhookDeliveryResponses];
export type RedeliverDeadWebhookDeliveriesData = {
    body?: never;
    path: {
        /**
         * The id of a webhook.
         */
        webhook: string;
    };
    query?: never;
    url: '/webhooks/{webhook}/redeliver-dead';
};
export type RedeliverDeadWebhookDeliveriesErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type RedeliverDeadWebhookDeliveriesError = RedeliverDeadWebhookDeliveriesErrors[keyof RedeliverDeadWebhookDeliveriesErrors];
export type RedeliverDeadWebhookDeliveriesResponses = {
    /**
     * They are sent again.
     */
    202: Redelivered;
};
export type RedeliverDeadWebhookDeliveriesResponse = RedeliverDeadWebhookDeliveriesResponses[keyof RedeliverDeadWebhookDeliveriesResponses];
export type RotateWebhookSecretData = {
    body?: never;
    path: {
        /**
         * The id of a webhook.
         */
        webhook: string;
    };
    query?: never;
    url: '/webhooks/{webhook}/rotate-secret';
};
export type RotateWebhookSecretErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type RotateWebhookSecretError = RotateWebhookSecretErrors[keyof RotateWebhookSecretErrors];
export type RotateWebhookSecretResponses = {
    /**
     * The new secret.
     */
    200: WebhookSecret;
};
export type RotateWebhookSecretResponse = RotateWebhookSecretResponses[keyof RotateWebhookSecretResponses];
export type TryWebhookData = {
    body?: never;
    path: {
        /**
         * The id of a webhook.
         */
        webhook: string;
    };
    query?: never;
    url: '/webhooks/{webhook}/test';
};
export type TryWebhookErrors = {
    /**
     * A valid API key is required
     */
    401: Problem;
    /**
     * The API key lacks the scope
     */
    403: Problem;
    /**
     * There is no such thing
     */
    404: Problem;
    /**
     * The service failed
     */
    500: Problem;
    /**
     * The service is not available right now
     */
    503: Problem;
};
export type TryWebhookError = TryWebhookErrors[keyof TryWebhookErrors];
export type TryWebhookResponses = {
    /**
     * What came of it.
     */
    200: WebhookTest;
};
export type TryWebhookResponse = TryWebhookResponses[keyof TryWebhookResponses];
