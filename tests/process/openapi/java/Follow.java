import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import headwater.ApiClient;
import headwater.ApiException;
import headwater.api.ChangesApi;
import headwater.api.ConsumersApi;
import headwater.api.DatasetsApi;
import headwater.api.ExportsApi;
import headwater.api.JobsApi;
import headwater.api.WritesApi;
import headwater.model.AnyChange;
import headwater.model.Change;
import headwater.model.ChangesPage;
import headwater.model.CreateDataset;
import headwater.model.CreateExport;
import headwater.model.CreateField;
import headwater.model.CreateSchema;
import headwater.model.CreateWrite;
import headwater.model.Dataset;
import headwater.model.Export;
import headwater.model.ExportFormat;
import headwater.model.ExportQuery;
import headwater.model.ExportRun;
import headwater.model.Feed;
import headwater.model.FeedConsumer;
import headwater.model.Job;
import headwater.model.JobState;
import headwater.model.Operation;
import headwater.model.PutConsumer;
import headwater.model.ReaderPosition;
import headwater.model.RowsSource;
import headwater.model.WriteSource;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Registers a dataset, writes to it, waits for the jobs, follows the feed as a consumer and exports it.
 *
 * <p>Uses the client that OpenAPI Generator makes. Takes HEADWATER_URL and HEADWATER_API_KEY from the environment;
 * prints what it saw as one line of JSON.
 */
public final class Follow {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final DatasetsApi datasets;
    private final WritesApi writes;
    private final JobsApi jobs;
    private final ChangesApi changes;
    private final ConsumersApi consumers;
    private final ExportsApi exports;

    private Follow(ApiClient client) {
        datasets = new DatasetsApi(client);
        writes = new WritesApi(client);
        jobs = new JobsApi(client);
        changes = new ChangesApi(client);
        consumers = new ConsumersApi(client);
        exports = new ExportsApi(client);
    }

    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient();
        client.updateBaseUri(System.getenv("HEADWATER_URL"));
        String credential = "Bearer " + System.getenv("HEADWATER_API_KEY");
        client.setRequestInterceptor(request -> request.header("Authorization", credential));
        System.out.println(JSON.writeValueAsString(new Follow(client).run()));
    }

    private Map<String, Object> run() throws Exception {
        CreateSchema schema = new CreateSchema()
            .addFieldsItem(new CreateField().name("sensor").type("string"))
            .addFieldsItem(new CreateField().name("value").type("double"));
        CreateDataset definition = new CreateDataset().name("readings").schema(schema).addRecordKeyItem("sensor");
        Dataset dataset = datasets.createDataset(
            DatasetsApi.APICreateDatasetRequest.newBuilder().createDataset(definition).build());
        Job first = ended(upsert(dataset, Map.of("sensor", "a", "value", 1.5)));
        Job second = ended(upsert(dataset, Map.of("sensor", "a", "value", 2.5)));

        List<Object> seen = new ArrayList<>();
        long since = 0;
        while (seen.size() < 3) {
            ChangesPage page = changes.readChanges(
                ChangesApi.APIReadChangesRequest.newBuilder()
                    .dataset(dataset.getId())
                    .since(Long.toString(since))
                    .feed(Feed.LONGPOLL)
                    .build());
            for (AnyChange each : page.getChanges()) {
                Change change = each.getChange();
                seen.add(List.of(change.getOffset(), change.getOp().getValue(), change.getRow()));
            }
            since = page.getNextSince().getLong();
        }

        FeedConsumer consumer = consumers.putConsumer(
            ConsumersApi.APIPutConsumerRequest.newBuilder()
                .dataset(dataset.getId())
                .name("follower")
                .putConsumer(new PutConsumer().offset(new ReaderPosition(since)))
                .build());
        Export export = exports.createExport(
            ExportsApi.APICreateExportRequest.newBuilder()
                .dataset(dataset.getId())
                .createExport(new CreateExport().query(ExportQuery.CHANGES).format(ExportFormat.NDJSON))
                .build());
        ended(job(export.getRuns().get(0).getJobId()));
        ExportRun run = exports.getExportRun(
            ExportsApi.APIGetExportRunRequest.newBuilder()
                .export(export.getId())
                .number(export.getRuns().get(0).getNumber())
                .build());

        Map<String, Object> result = new LinkedHashMap<>();
        result.put("versions", List.of(first.getCommittedVersion(), second.getCommittedVersion()));
        result.put("changes", seen);
        result.put("since", since);
        result.put("consumer", List.of(consumer.getOffset().getActualInstance(), consumer.getLag().getChanges()));
        result.put("exported", List.of(run.getRows(), run.getFiles().size()));
        result.put("problem", problemOfNull(dataset));
        return result;
    }

    /** The type of the problem of a row whose key is null. */
    private String problemOfNull(Dataset dataset) throws Exception {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("sensor", null);
        try {
            upsert(dataset, row);
        } catch (ApiException error) {
            JsonNode problem = JSON.readTree(error.getResponseBody());
            return problem.get("type").asText();
        }
        throw new IllegalStateException("a row without a key was accepted");
    }

    private Job upsert(Dataset dataset, Map<String, Object> row) throws ApiException {
        RowsSource rows = new RowsSource().kind(RowsSource.KindEnum.ROWS).addRowsItem(row);
        CreateWrite write = new CreateWrite().operation(Operation.UPSERT).source(new WriteSource(rows));
        return writes.createWrite(
            WritesApi.APICreateWriteRequest.newBuilder().dataset(dataset.getId()).createWrite(write).build());
    }

    /** The job, after at most twenty seconds of waiting for its end. */
    private Job job(String id) throws ApiException {
        return jobs.getJob(JobsApi.APIGetJobRequest.newBuilder().job(id).waitSeconds(20L).build());
    }

    /** The job once it has succeeded. */
    private Job ended(Job job) throws ApiException {
        while (job.getState() == JobState.QUEUED || job.getState() == JobState.RUNNING) {
            job = job(job.getId());
        }
        if (job.getState() != JobState.SUCCEEDED) {
            throw new IllegalStateException("the job has ended as " + job.getState() + ": " + job.getError());
        }
        return job;
    }
}
