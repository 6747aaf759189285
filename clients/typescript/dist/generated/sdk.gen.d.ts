import type { Client, Options as Options2, TDataShape } from './client/index.js';
import type { CancelJobData, CancelJobErrors, CancelJobResponses, ChangeDatasetData, ChangeDatasetErrors, ChangeDatasetResponses, ChangeExportData, ChangeExportErrors, ChangeExportResponses, ChangeViewData, ChangeViewErrors, ChangeViewResponses, ChangeWebhookData, ChangeWebhookErrors, ChangeWebhookResponses, CheckExportFileData, CheckExportFileErrors, CheckExportFileResponses, CheckResultFileData, CheckResultFileErrors, CheckResultFileResponses, CreateCleanData, CreateCleanErrors, CreateCleanResponses, CreateClusteringData, CreateClusteringErrors, CreateClusteringResponses, CreateCompactionData, CreateCompactionErrors, CreateCompactionResponses, CreateComparisonData, CreateComparisonErrors, CreateComparisonResponses, CreateDatasetData, CreateDatasetErrors, CreateDatasetResponses, CreateExportData, CreateExportErrors, CreateExportResponses, CreateReadData, CreateReadErrors, CreateReadResponses, CreateRestoreData, CreateRestoreErrors, CreateRestoreResponses, CreateRollbackData, CreateRollbackErrors, CreateRollbackResponses, CreateSavepointData, CreateSavepointErrors, CreateSavepointResponses, CreateTagData, CreateTagErrors, CreateTagResponses, CreateTransactionData, CreateTransactionErrors, CreateTransactionResponses, CreateUploadData, CreateUploadErrors, CreateUploadResponses, CreateViewData, CreateViewErrors, CreateViewResponses, CreateWebhookData, CreateWebhookErrors, CreateWebhookResponses, CreateWriteData, CreateWriteErrors, CreateWriteResponses, DeleteConsumerData, DeleteConsumerErrors, DeleteConsumerResponses, DeleteDatasetData, DeleteDatasetErrors, DeleteDatasetResponses, DeleteExportData, DeleteExportErrors, DeleteExportResponses, DeleteSavepointData, DeleteSavepointErrors, DeleteSavepointResponses, DeleteTagData, DeleteTagErrors, DeleteTagResponses, DeleteViewData, DeleteViewErrors, DeleteViewResponses, DeleteWebhookData, DeleteWebhookErrors, DeleteWebhookResponses, DiscardQuarantineData, DiscardQuarantineErrors, DiscardQuarantineResponses, DownloadExportFileData, DownloadExportFileErrors, DownloadExportFileResponses, DownloadResultFileData, DownloadResultFileErrors, DownloadResultFileResponses, EndPartitionsData, EndPartitionsErrors, EndPartitionsResponses, ExplainKeysData, ExplainKeysErrors, ExplainKeysResponses, ExplainWriteData, ExplainWriteErrors, ExplainWriteResponses, FollowChangesData, FollowChangesErrors, FollowChangesResponse, FollowChangesResponses, FollowJobData, FollowJobErrors, FollowJobResponse, FollowJobResponses, GetConsumerData, GetConsumerErrors, GetConsumerResponses, GetDatasetData, GetDatasetErrors, GetDatasetResponses, GetDatasetSchemaData, GetDatasetSchemaErrors, GetDatasetSchemaResponses, GetExportData, GetExportErrors, GetExportResponses, GetExportRunData, GetExportRunErrors, GetExportRunResponses, GetJobData, GetJobErrors, GetJobResponses, GetLivenessData, GetLivenessErrors, GetLivenessResponses, GetMetastoreReportData, GetMetastoreReportErrors, GetMetastoreReportResponses, GetReadinessData, GetReadinessErrors, GetReadinessResponses, GetResultData, GetResultErrors, GetResultResponses, GetSavepointData, GetSavepointErrors, GetSavepointResponses, GetTagData, GetTagErrors, GetTagResponses, GetTransactionData, GetTransactionErrors, GetTransactionResponses, GetViewData, GetViewErrors, GetViewResponses, GetWebhookData, GetWebhookDeliveryData, GetWebhookDeliveryErrors, GetWebhookDeliveryResponses, GetWebhookErrors, GetWebhookResponses, LeaseConsumerData, LeaseConsumerErrors, LeaseConsumerResponses, ListConsumersData, ListConsumersErrors, ListConsumersResponses, ListDatasetSchemasData, ListDatasetSchemasErrors, ListDatasetSchemasResponses, ListDatasetsData, ListDatasetsErrors, ListDatasetsResponses, ListExportRunsData, ListExportRunsErrors, ListExportRunsResponses, ListExportsData, ListExportsErrors, ListExportsResponses, ListFilesData, ListFilesErrors, ListFilesResponses, ListPartitionsData, ListPartitionsErrors, ListPartitionsResponses, ListSavepointsData, ListSavepointsErrors, ListSavepointsResponses, ListTagsData, ListTagsErrors, ListTagsResponses, ListViewsData, ListViewsErrors, ListViewsResponses, ListWebhookDeliveriesData, ListWebhookDeliveriesErrors, ListWebhookDeliveriesResponses, ListWebhooksData, ListWebhooksErrors, ListWebhooksResponses, PutConsumerData, PutConsumerErrors, PutConsumerResponses, ReadChangesData, ReadChangesErrors, ReadChangesResponses, ReadCorrectionsData, ReadCorrectionsErrors, ReadCorrectionsResponses, ReadPartitionEventsData, ReadPartitionEventsErrors, ReadPartitionEventsResponses, ReadQuarantineData, ReadQuarantineErrors, ReadQuarantineResponses, ReadRowsData, ReadRowsErrors, ReadRowsResponses, ReadStatisticsData, ReadStatisticsErrors, ReadStatisticsResponses, ReadTimelineData, ReadTimelineErrors, ReadTimelineResponses, RedeliverDeadWebhookDeliveriesData, RedeliverDeadWebhookDeliveriesErrors, RedeliverDeadWebhookDeliveriesResponses, RedeliverWebhookDeliveryData, RedeliverWebhookDeliveryErrors, RedeliverWebhookDeliveryResponses, RedriveQuarantineData, RedriveQuarantineErrors, RedriveQuarantineResponses, RefreshViewData, RefreshViewErrors, RefreshViewResponses, ReleaseConsumerData, ReleaseConsumerErrors, ReleaseConsumerResponses, RotateWebhookSecretData, RotateWebhookSecretErrors, RotateWebhookSecretResponses, StartExportRunData, StartExportRunErrors, StartExportRunResponses, TryWebhookData, TryWebhookErrors, TryWebhookResponses, VerifyDatasetData, VerifyDatasetErrors, VerifyDatasetResponses } from './types.gen.js';
export type Options<TData extends TDataShape = TDataShape, ThrowOnError extends boolean = boolean, TResponse = unknown> = Options2<TData, ThrowOnError, TResponse> & {
    /**
     * You can provide a client instance returned by `createClient()` instead of
     * individual options. This might be also useful if you want to implement a
     * custom client.
     */
    client?: Client;
    /**
     * You can pass arbitrary values through the `meta` object. This can be
     * used to access values that aren't defined as part of the SDK function.
     */
    meta?: Record<string, unknown>;
};
/**
 * List datasets
 *
 * Lists the tenant's datasets by name.
 */
export declare const listDatasets: <ThrowOnError extends boolean = false>(options?: Options<ListDatasetsData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ListDatasetsResponses, ListDatasetsErrors, ThrowOnError, "fields">;
/**
 * Register a dataset
 *
 * Registers a dataset: its columns, its key, and how rows are laid out and merged.
 *
 * Without a `record_key` it is append-only.
 */
export declare const createDataset: <ThrowOnError extends boolean = false>(options: Options<CreateDatasetData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateDatasetResponses, CreateDatasetErrors, ThrowOnError, "fields">;
/**
 * End a dataset
 *
 * Ends a dataset and cancels its jobs.
 */
export declare const deleteDataset: <ThrowOnError extends boolean = false>(options: Options<DeleteDatasetData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<DeleteDatasetResponses, DeleteDatasetErrors, ThrowOnError, "fields">;
/**
 * Get a dataset
 *
 * A dataset by its id or its name.
 */
export declare const getDataset: <ThrowOnError extends boolean = false>(options: Options<GetDatasetData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetDatasetResponses, GetDatasetErrors, ThrowOnError, "fields">;
/**
 * Change a dataset
 *
 * Changes the schema, one change after another, and how long the feed is kept: all of it, or nothing.
 *
 * That makes a version of its own. No file is rewritten: rows that are there already are read under the new schema.
 */
export declare const changeDataset: <ThrowOnError extends boolean = false>(options: Options<ChangeDatasetData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ChangeDatasetResponses, ChangeDatasetErrors, ThrowOnError, "fields">;
/**
 * Read the feed
 *
 * Changes from a position on, in commit order, without gaps but for those that `where` and `partitions` leave out.
 *
 * NDJSON and Arrow give the position in headers. A longpoll that times out answers with an empty page, and so does
 * one that has reached `until`, at once. `columns` are those of `row`; they need not hold the record key, nor what
 * `where` asks for. A page looks at a bounded number of changes, so with a filter it may be empty though changes are
 * `pending`.
 */
export declare const readChanges: <ThrowOnError extends boolean = false>(options: Options<ReadChangesData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ReadChangesResponses, ReadChangesErrors, ThrowOnError, "fields">;
/**
 * Read which changes were taken back
 *
 * Which changes with offsets `from` to before `to` were corrected or retracted by now, and by which change.
 *
 * A change is taken back once at most. A page may be empty although another follows, where much of the feed was looked
 * at in vain.
 */
export declare const readCorrections: <ThrowOnError extends boolean = false>(options: Options<ReadCorrectionsData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ReadCorrectionsResponses, ReadCorrectionsErrors, ThrowOnError, "fields">;
/**
 * Follow the feed
 *
 * Sends the changes from a position on, and then each as it comes; ends where `until` is reached.
 *
 * The `id` of a `-C` is its own position, so that whoever stops behind it gets the pair again, not half of it. An
 * event `schema`, whose data is `{"schema_id": …}`, says that the rows behind it are told under another schema. While
 * `where` or `partitions` leave all changes out, an `id` without data comes every few seconds.
 */
export declare const followChanges: <ThrowOnError extends boolean = false>(options: Options<FollowChangesData, ThrowOnError, FollowChangesResponse>) => Promise<import("./core/serverSentEvents.gen.js").ServerSentEventsResult<FollowChangesResponses, FollowChangesErrors>>;
/**
 * Clean a dataset
 *
 * Forgets earlier versions, and removes the files that none of those has which are kept.
 *
 * Versions that have a name, and those that are being read, stay readable. Instants beyond those that
 * `services.timeline` keeps are archived. Neither the table nor its feed changes, and no version is made. The job's
 * `result` says what went. The body may be left out.
 */
export declare const createClean: <ThrowOnError extends boolean = false>(options: Options<CreateCleanData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateCleanResponses, CreateCleanErrors, ThrowOnError, "fields">;
/**
 * Cluster a dataset
 *
 * Writes files anew with their rows in the order of some columns, so that filters on these read few of them.
 *
 * It changes no row, tells nothing in the feed, and runs beside writes, to which it yields. What is in that order
 * already stays as it is; where that is all, it makes no version. The job's `result` says what was rewritten. The body
 * may be left out.
 */
export declare const createClustering: <ThrowOnError extends boolean = false>(options: Options<CreateClusteringData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateClusteringResponses, CreateClusteringErrors, ThrowOnError, "fields">;
/**
 * Compact a dataset
 *
 * Folds logs, postponed writes, deletion vectors and small files into base files.
 *
 * It changes no row, and runs beside writes, to which it yields. Postponed writes become visible by it, and with
 * producer `deferred` the changes of logs appear in the feed. Where there is nothing to fold, it makes no version. The
 * job's `result` says what was rewritten. The body may be left out.
 */
export declare const createCompaction: <ThrowOnError extends boolean = false>(options: Options<CreateCompactionData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateCompactionResponses, CreateCompactionErrors, ThrowOnError, "fields">;
/**
 * Compare two versions
 *
 * Counts the rows that are there at one version and not at the other, and those that have other values.
 *
 * The job's `result` tells them, along with the files that came and went, and how the schema changed.
 */
export declare const createComparison: <ThrowOnError extends boolean = false>(options: Options<CreateComparisonData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateComparisonResponses, CreateComparisonErrors, ThrowOnError, "fields">;
/**
 * List consumers
 *
 * Every position in the feed that is kept: those of readers, and those of webhooks, exports and views.
 */
export declare const listConsumers: <ThrowOnError extends boolean = false>(options: Options<ListConsumersData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ListConsumersResponses, ListConsumersErrors, ThrowOnError, "fields">;
/**
 * End a consumer
 *
 * Forgets a position, also one that a member holds.
 */
export declare const deleteConsumer: <ThrowOnError extends boolean = false>(options: Options<DeleteConsumerData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<DeleteConsumerResponses, DeleteConsumerErrors, ThrowOnError, "fields">;
/**
 * Get a consumer
 *
 * Where a consumer stands, and how far behind.
 */
export declare const getConsumer: <ThrowOnError extends boolean = false>(options: Options<GetConsumerData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetConsumerResponses, GetConsumerErrors, ThrowOnError, "fields">;
/**
 * Make a consumer, or commit a position
 *
 * Makes a consumer at a position, or moves the one that there is.
 *
 * A position is what a page gave as `next_since`: everything before it is done with. It goes forward, unless `reset`.
 * Without `offset`, only `max_lag` changes.
 */
export declare const putConsumer: <ThrowOnError extends boolean = false>(options: Options<PutConsumerData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<PutConsumerResponses, PutConsumerErrors, ThrowOnError, "fields">;
/**
 * Let go of a consumer
 *
 * Ends a lease before it runs out.
 */
export declare const releaseConsumer: <ThrowOnError extends boolean = false>(options: Options<ReleaseConsumerData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ReleaseConsumerResponses, ReleaseConsumerErrors, ThrowOnError, "fields">;
/**
 * Hold a consumer
 *
 * Gives the consumer to one member of a group: until its lease runs out, nobody else commits.
 *
 * With its token a member extends its lease. Without, a member of the same name takes the consumer over from its
 * former self.
 */
export declare const leaseConsumer: <ThrowOnError extends boolean = false>(options: Options<LeaseConsumerData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<LeaseConsumerResponses, LeaseConsumerErrors, ThrowOnError, "fields">;
/**
 * Explain where keys are and how they would be written
 *
 * What an upsert of these keys would touch: file group, bucket, files, and whether each key has a row now.
 */
export declare const explainKeys: <ThrowOnError extends boolean = false>(options: Options<ExplainKeysData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ExplainKeysResponses, ExplainKeysErrors, ThrowOnError, "fields">;
/**
 * Explain a write without running it
 *
 * What a write with this body would touch. Nothing is written; the rows are in the body, 1,000 at most.
 */
export declare const explainWrite: <ThrowOnError extends boolean = false>(options: Options<ExplainWriteData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ExplainWriteResponses, ExplainWriteErrors, ThrowOnError, "fields">;
/**
 * List exports
 *
 * The exports of a dataset, those that have ended too.
 */
export declare const listExports: <ThrowOnError extends boolean = false>(options: Options<ListExportsData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ListExportsResponses, ListExportsErrors, ThrowOnError, "fields">;
/**
 * Export changes, or changed rows
 *
 * Writes a range of the feed to files: its changes, or the rows that the changed keys have at its end.
 *
 * One with a schedule that has nothing to write yet waits for the first change.
 */
export declare const createExport: <ThrowOnError extends boolean = false>(options: Options<CreateExportData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateExportResponses, CreateExportErrors, ThrowOnError, "fields">;
/**
 * List the data files of a version
 *
 * What the table is made of at a version: base files, logs that readers merge in, and postponed writes.
 */
export declare const listFiles: <ThrowOnError extends boolean = false>(options: Options<ListFilesData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ListFilesResponses, ListFilesErrors, ThrowOnError, "fields">;
/**
 * See what a Hive metastore was told
 *
 * How far the dataset was reported to the Hive metastore that its `services.metastore` names a table of.
 */
export declare const getMetastoreReport: <ThrowOnError extends boolean = false>(options: Options<GetMetastoreReportData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetMetastoreReportResponses, GetMetastoreReportErrors, ThrowOnError, "fields">;
/**
 * List the partitions of a version
 *
 * Partitions that have files, with their rows and bytes. A table without partitions has one, whose path is empty.
 *
 * Whether a partition is done is told as it stands now, of whichever version its files are.
 */
export declare const listPartitions: <ThrowOnError extends boolean = false>(options: Options<ListPartitionsData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ListPartitionsResponses, ListPartitionsErrors, ThrowOnError, "fields">;
/**
 * Mark partitions as done
 *
 * Says that partitions get no more input. All of them are done as of the head's version, or none is.
 *
 * One that is done already stays so. If data comes to it later all the same, it is open again, and can be done again.
 */
export declare const endPartitions: <ThrowOnError extends boolean = false>(options: Options<EndPartitionsData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<EndPartitionsResponses, EndPartitionsErrors, ThrowOnError, "fields">;
/**
 * Read the events of partitions
 *
 * Which partitions were done or reopened, in order. Events are numbered without a gap, and never forgotten.
 */
export declare const readPartitionEvents: <ThrowOnError extends boolean = false>(options: Options<ReadPartitionEventsData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ReadPartitionEventsResponses, ReadPartitionEventsErrors, ThrowOnError, "fields">;
/**
 * Discard bad records
 *
 * Forgets the bad records of a job for good, whether or not they were driven again.
 */
export declare const discardQuarantine: <ThrowOnError extends boolean = false>(options: Options<DiscardQuarantineData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<DiscardQuarantineResponses, DiscardQuarantineErrors, ThrowOnError, "fields">;
/**
 * List bad records
 *
 * The records that writes with `on_error=quarantine` have set aside, with what is wrong with each.
 *
 * A page of large records ends early.
 */
export declare const readQuarantine: <ThrowOnError extends boolean = false>(options: Options<ReadQuarantineData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ReadQuarantineResponses, ReadQuarantineErrors, ThrowOnError, "fields">;
/**
 * Drive bad records again
 *
 * Writes records again, repaired or as they were, in a new job with the operation of the one they came with.
 *
 * Each record is driven again once; those that are bad again are set aside anew, under the new job.
 */
export declare const redriveQuarantine: <ThrowOnError extends boolean = false>(options: Options<RedriveQuarantineData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<RedriveQuarantineResponses, RedriveQuarantineErrors, ThrowOnError, "fields">;
/**
 * Read a table, or what changed in it, with a job
 *
 * Reads rows of any number. The version is settled now, and held while they are read; `GET /jobs/{id}/result` has
 * them once the job has succeeded. Without a body it reads the whole table as it is.
 */
export declare const createRead: <ThrowOnError extends boolean = false>(options: Options<CreateReadData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateReadResponses, CreateReadErrors, ThrowOnError, "fields">;
/**
 * Go back to an earlier version
 *
 * Gives the dataset the rows that it had at a version, under the schema that it has now.
 *
 * It is a write: it makes a new version, and the feed tells what it changes. Writes that were accepted before it are
 * undone with the others. Nothing of the past is lost, so that a restore can be undone as well.
 */
export declare const createRestore: <ThrowOnError extends boolean = false>(options: Options<CreateRestoreData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateRestoreResponses, CreateRestoreErrors, ThrowOnError, "fields">;
/**
 * Undo the newest writes
 *
 * Undoes the newest versions that writes have made by the time the job runs.
 *
 * Writes that were committed together made one version. Table services and changes of the schema are neither counted
 * nor undone; restores and rollbacks are writes, so undoing one of them brings back what it undid.
 */
export declare const createRollback: <ThrowOnError extends boolean = false>(options: Options<CreateRollbackData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateRollbackResponses, CreateRollbackErrors, ThrowOnError, "fields">;
/**
 * Read rows of the table
 *
 * Rows of the table now or back in time, without a job.
 */
export declare const readRows: <ThrowOnError extends boolean = false>(options: Options<ReadRowsData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ReadRowsResponses, ReadRowsErrors, ThrowOnError, "fields">;
/**
 * List savepoints
 *
 * The savepoints of a dataset.
 */
export declare const listSavepoints: <ThrowOnError extends boolean = false>(options: Options<ListSavepointsData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ListSavepointsResponses, ListSavepointsErrors, ThrowOnError, "fields">;
/**
 * Keep a version to go back to
 *
 * Gives a version a name, and keeps it as long as it has that: it can be read, and restored.
 *
 * The feed is not cut behind it, so that what has happened since can be told, too.
 */
export declare const createSavepoint: <ThrowOnError extends boolean = false>(options: Options<CreateSavepointData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateSavepointResponses, CreateSavepointErrors, ThrowOnError, "fields">;
/**
 * End a savepoint
 *
 * Ends the name. The version is kept no longer than its history says, and so is the feed.
 */
export declare const deleteSavepoint: <ThrowOnError extends boolean = false>(options: Options<DeleteSavepointData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<DeleteSavepointResponses, DeleteSavepointErrors, ThrowOnError, "fields">;
/**
 * Get a savepoint
 *
 * Which version it keeps, and until when.
 */
export declare const getSavepoint: <ThrowOnError extends boolean = false>(options: Options<GetSavepointData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetSavepointResponses, GetSavepointErrors, ThrowOnError, "fields">;
/**
 * Get the schema of a dataset
 *
 * A schema, with the ids that fields keep when they are renamed.
 */
export declare const getDatasetSchema: <ThrowOnError extends boolean = false>(options: Options<GetDatasetSchemaData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetDatasetSchemaResponses, GetDatasetSchemaErrors, ThrowOnError, "fields">;
/**
 * List the schemas of a dataset
 *
 * Every schema that the dataset had.
 */
export declare const listDatasetSchemas: <ThrowOnError extends boolean = false>(options: Options<ListDatasetSchemasData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ListDatasetSchemasResponses, ListDatasetSchemasErrors, ThrowOnError, "fields">;
/**
 * Read a table in numbers
 *
 * Rows, files and bytes by kind, what was written so far, what was kept, who is behind, what waits.
 *
 * All of it comes from the catalogue; no file is read.
 */
export declare const readStatistics: <ThrowOnError extends boolean = false>(options: Options<ReadStatisticsData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ReadStatisticsResponses, ReadStatisticsErrors, ThrowOnError, "fields">;
/**
 * List tags
 *
 * The tags of a dataset, those that it gets by itself included.
 */
export declare const listTags: <ThrowOnError extends boolean = false>(options: Options<ListTagsData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ListTagsResponses, ListTagsErrors, ThrowOnError, "fields">;
/**
 * Name a version
 *
 * Gives a version a name by which it is read, and keeps it as long as it has that.
 */
export declare const createTag: <ThrowOnError extends boolean = false>(options: Options<CreateTagData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateTagResponses, CreateTagErrors, ThrowOnError, "fields">;
/**
 * End a tag
 *
 * Ends the name. The version is kept no longer than its history says.
 */
export declare const deleteTag: <ThrowOnError extends boolean = false>(options: Options<DeleteTagData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<DeleteTagResponses, DeleteTagErrors, ThrowOnError, "fields">;
/**
 * Get a tag
 *
 * Which version it names, and until when.
 */
export declare const getTag: <ThrowOnError extends boolean = false>(options: Options<GetTagData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetTagResponses, GetTagErrors, ThrowOnError, "fields">;
/**
 * Read the timeline
 *
 * Every attempt to change the dataset, latest request first: waiting, running, completed, rolled back.
 *
 * Also what has been archived. Where much of that is passed over, a page may have less than it has room for.
 */
export declare const readTimeline: <ThrowOnError extends boolean = false>(options: Options<ReadTimelineData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ReadTimelineResponses, ReadTimelineErrors, ThrowOnError, "fields">;
/**
 * Upload a large input
 *
 * Stores the bytes of the body as they are. A write with `source.kind: upload` says how to read them.
 */
export declare const createUpload: <ThrowOnError extends boolean = false>(options: Options<CreateUploadData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateUploadResponses, CreateUploadErrors, ThrowOnError, "fields">;
/**
 * Verify that a dataset is what its feed says
 *
 * Folds the feed up to a version and compares what that makes with the table, row by row.
 *
 * The job's `result` says whether they are equal, and where first they are not. The body may be left out.
 */
export declare const verifyDataset: <ThrowOnError extends boolean = false>(options: Options<VerifyDatasetData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<VerifyDatasetResponses, VerifyDatasetErrors, ThrowOnError, "fields">;
/**
 * Write rows
 *
 * Accepts rows as JSON, or raw as NDJSON, CSV, an Arrow stream or Parquet, each also with gzip encoding.
 *
 * Small JSON, NDJSON and CSV bodies are checked at once, larger, Arrow and Parquet ones by their job.
 */
export declare const createWrite: <ThrowOnError extends boolean = false>(options: Options<CreateWriteData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateWriteResponses, CreateWriteErrors, ThrowOnError, "fields">;
/**
 * Delete an export
 *
 * Ends an export, cancels what is under way, and removes its runs with their files.
 */
export declare const deleteExport: <ThrowOnError extends boolean = false>(options: Options<DeleteExportData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<DeleteExportResponses, DeleteExportErrors, ThrowOnError, "fields">;
/**
 * Get an export
 *
 * An export with its latest runs. `offset` is where the next one starts.
 */
export declare const getExport: <ThrowOnError extends boolean = false>(options: Options<GetExportData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetExportResponses, GetExportErrors, ThrowOnError, "fields">;
/**
 * Pause an export, or change when it runs
 *
 * Pauses an export, has it go on, or gives it another schedule. What is under way goes on.
 */
export declare const changeExport: <ThrowOnError extends boolean = false>(options: Options<ChangeExportData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ChangeExportResponses, ChangeExportErrors, ThrowOnError, "fields">;
/**
 * List the runs of an export
 *
 * Every run, also those that failed.
 */
export declare const listExportRuns: <ThrowOnError extends boolean = false>(options: Options<ListExportRunsData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ListExportRunsResponses, ListExportRunsErrors, ThrowOnError, "fields">;
/**
 * Run an export now
 *
 * Exports what there is from where the export stopped to the head.
 *
 * A run that is under way is answered instead, and one that failed is made again. Where there is no change, the run
 * has no rows.
 */
export declare const startExportRun: <ThrowOnError extends boolean = false>(options: Options<StartExportRunData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<StartExportRunResponses, StartExportRunErrors, ThrowOnError, "fields">;
/**
 * Get the manifest of a run
 *
 * A run, and its manifest: what it has written. Before it has succeeded, `files` is empty.
 */
export declare const getExportRun: <ThrowOnError extends boolean = false>(options: Options<GetExportRunData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetExportRunResponses, GetExportRunErrors, ThrowOnError, "fields">;
/**
 * Download a file of an export
 *
 * A file that a run has written, or `manifest.json`, which lists the others. A download that broke off goes on
 * with `Range` and `If-Range`.
 */
export declare const downloadExportFile: <ThrowOnError extends boolean = false>(options: Options<DownloadExportFileData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<DownloadExportFileResponses, DownloadExportFileErrors, ThrowOnError, "fields">;
/**
 * Look at a file of an export
 *
 * What `GET` would answer, without the file: its size and its ETag.
 */
export declare const checkExportFile: <ThrowOnError extends boolean = false>(options: Options<CheckExportFileData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CheckExportFileResponses, CheckExportFileErrors, ThrowOnError, "fields">;
/**
 * Is the process alive?
 *
 * Answers as long as the process does; asks nothing of anyone.
 */
export declare const getLiveness: <ThrowOnError extends boolean = false>(options?: Options<GetLivenessData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetLivenessResponses, GetLivenessErrors, ThrowOnError, "fields">;
/**
 * Can the service serve?
 *
 * Ready once the database is reachable and at this release's schema, and a worker is alive.
 */
export declare const getReadiness: <ThrowOnError extends boolean = false>(options?: Options<GetReadinessData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetReadinessResponses, GetReadinessErrors, ThrowOnError, "fields">;
/**
 * Get a job, or wait for it
 *
 * The job as it stands, however it ended: a failed job is an answer here, not an error.
 */
export declare const getJob: <ThrowOnError extends boolean = false>(options: Options<GetJobData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetJobResponses, GetJobErrors, ThrowOnError, "fields">;
/**
 * Cancel a job
 *
 * Cancels a queued or running job: nothing of it will be visible. One that has ended answers 409.
 */
export declare const cancelJob: <ThrowOnError extends boolean = false>(options: Options<CancelJobData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CancelJobResponses, CancelJobErrors, ThrowOnError, "fields">;
/**
 * Follow a job
 *
 * Sends the job whenever it changes, and ends with it.
 */
export declare const followJob: <ThrowOnError extends boolean = false>(options: Options<FollowJobData, ThrowOnError, FollowJobResponse>) => Promise<import("./core/serverSentEvents.gen.js").ServerSentEventsResult<FollowJobResponses, FollowJobErrors>>;
/**
 * Get the result of a read job
 *
 * What a read job has read, in the format that it was asked for. Where that is more than one answer may have, or
 * files were asked for, it lists them. A job that failed answers with its problem.
 */
export declare const getResult: <ThrowOnError extends boolean = false>(options: Options<GetResultData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetResultResponses, GetResultErrors, ThrowOnError, "fields">;
/**
 * Download a file of a result
 *
 * A file that a read job has written. A download that broke off goes on with `Range` and `If-Range`.
 */
export declare const downloadResultFile: <ThrowOnError extends boolean = false>(options: Options<DownloadResultFileData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<DownloadResultFileResponses, DownloadResultFileErrors, ThrowOnError, "fields">;
/**
 * Look at a file of a result
 *
 * What `GET` would answer, without the file: its size and its ETag.
 */
export declare const checkResultFile: <ThrowOnError extends boolean = false>(options: Options<CheckResultFileData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CheckResultFileResponses, CheckResultFileErrors, ThrowOnError, "fields">;
/**
 * Write to several datasets at once
 *
 * Accepts writes to different datasets that become visible together, each as a version of its dataset, or not at
 * all: if one fails, all do.
 */
export declare const createTransaction: <ThrowOnError extends boolean = false>(options: Options<CreateTransactionData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateTransactionResponses, CreateTransactionErrors, ThrowOnError, "fields">;
/**
 * Get a transaction, or wait for it
 *
 * The transaction as it stands, however it ended: a failed one is an answer here, not an error.
 */
export declare const getTransaction: <ThrowOnError extends boolean = false>(options: Options<GetTransactionData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetTransactionResponses, GetTransactionErrors, ThrowOnError, "fields">;
/**
 * List views
 *
 * Lists the tenant's views by name.
 */
export declare const listViews: <ThrowOnError extends boolean = false>(options?: Options<ListViewsData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ListViewsResponses, ListViewsErrors, ThrowOnError, "fields">;
/**
 * Register a view
 *
 * Registers a dataset whose rows are the result of SQL over others. It follows their changes by itself.
 *
 * Its columns are those of the SQL, and it has a feed like any other dataset.
 */
export declare const createView: <ThrowOnError extends boolean = false>(options: Options<CreateViewData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateViewResponses, CreateViewErrors, ThrowOnError, "fields">;
/**
 * End a view
 *
 * Ends a view, and its dataset with it.
 */
export declare const deleteView: <ThrowOnError extends boolean = false>(options: Options<DeleteViewData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<DeleteViewResponses, DeleteViewErrors, ThrowOnError, "fields">;
/**
 * Get a view
 *
 * A view by its id or its name: how far it has followed its inputs, and what is wrong if it does not.
 */
export declare const getView: <ThrowOnError extends boolean = false>(options: Options<GetViewData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetViewResponses, GetViewErrors, ThrowOnError, "fields">;
/**
 * Pause or resume a view
 *
 * Stops a view from following its inputs by itself, or has it go on, with all that came meanwhile.
 */
export declare const changeView: <ThrowOnError extends boolean = false>(options: Options<ChangeViewData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ChangeViewResponses, ChangeViewErrors, ThrowOnError, "fields">;
/**
 * Refresh a view
 *
 * Queues a refresh now: for a view that failed, say. If one is queued already, the answer is that one.
 */
export declare const refreshView: <ThrowOnError extends boolean = false>(options: Options<RefreshViewData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<RefreshViewResponses, RefreshViewErrors, ThrowOnError, "fields">;
/**
 * List webhooks
 *
 * Lists the tenant's webhooks.
 */
export declare const listWebhooks: <ThrowOnError extends boolean = false>(options?: Options<ListWebhooksData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ListWebhooksResponses, ListWebhooksErrors, ThrowOnError, "fields">;
/**
 * Register a webhook
 *
 * Registers a URL to which the changes of a dataset are sent as they are committed, in order, at least once.
 *
 * The secret with which messages are signed is in this answer only.
 */
export declare const createWebhook: <ThrowOnError extends boolean = false>(options: Options<CreateWebhookData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<CreateWebhookResponses, CreateWebhookErrors, ThrowOnError, "fields">;
/**
 * End a webhook
 *
 * Ends a webhook and forgets its messages. One that is being sent may still arrive.
 */
export declare const deleteWebhook: <ThrowOnError extends boolean = false>(options: Options<DeleteWebhookData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<DeleteWebhookResponses, DeleteWebhookErrors, ThrowOnError, "fields">;
/**
 * Get a webhook
 *
 * A webhook, how far it is, and why it is paused if the service did that. Its secret is not told.
 */
export declare const getWebhook: <ThrowOnError extends boolean = false>(options: Options<GetWebhookData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetWebhookResponses, GetWebhookErrors, ThrowOnError, "fields">;
/**
 * Change, pause or resume a webhook
 *
 * Changes what is named, and has what waits for its next attempt tried at once.
 *
 * A message that was begun is still told as it was before. With `since` the webhook goes on from that position, and
 * what waits is given up.
 */
export declare const changeWebhook: <ThrowOnError extends boolean = false>(options: Options<ChangeWebhookData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ChangeWebhookResponses, ChangeWebhookErrors, ThrowOnError, "fields">;
/**
 * List the messages of a webhook
 *
 * Messages that wait, arrived or were given up; those that ended long ago are forgotten.
 */
export declare const listWebhookDeliveries: <ThrowOnError extends boolean = false>(options: Options<ListWebhookDeliveriesData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<ListWebhookDeliveriesResponses, ListWebhookDeliveriesErrors, ThrowOnError, "fields">;
/**
 * Get a message of a webhook
 *
 * A message, with what came of its last attempt.
 */
export declare const getWebhookDelivery: <ThrowOnError extends boolean = false>(options: Options<GetWebhookDeliveryData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<GetWebhookDeliveryResponses, GetWebhookDeliveryErrors, ThrowOnError, "fields">;
/**
 * Send a message again
 *
 * Has a message that arrived or was given up sent again, with the same id and body, beside those that come.
 */
export declare const redeliverWebhookDelivery: <ThrowOnError extends boolean = false>(options: Options<RedeliverWebhookDeliveryData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<RedeliverWebhookDeliveryResponses, RedeliverWebhookDeliveryErrors, ThrowOnError, "fields">;
/**
 * Send all dead messages again
 *
 * Has all messages that were given up sent again, beside those that come.
 */
export declare const redeliverDeadWebhookDeliveries: <ThrowOnError extends boolean = false>(options: Options<RedeliverDeadWebhookDeliveriesData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<RedeliverDeadWebhookDeliveriesResponses, RedeliverDeadWebhookDeliveriesErrors, ThrowOnError, "fields">;
/**
 * Change the secret of a webhook
 *
 * Makes a new secret, which is told only now. For a day, messages are signed with the one before as well.
 */
export declare const rotateWebhookSecret: <ThrowOnError extends boolean = false>(options: Options<RotateWebhookSecretData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<RotateWebhookSecretResponses, RotateWebhookSecretErrors, ThrowOnError, "fields">;
/**
 * Send a test message
 *
 * Sends a message of type `webhook.test` now, once, and tells what the receiver answered.
 */
export declare const tryWebhook: <ThrowOnError extends boolean = false>(options: Options<TryWebhookData, ThrowOnError>) => import("./client/types.gen.js").RequestResult<TryWebhookResponses, TryWebhookErrors, ThrowOnError, "fields">;
