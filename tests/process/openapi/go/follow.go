// Registers a dataset, writes to it, waits for the jobs, follows the feed as a consumer and exports it, with the
// generated client. Takes HEADWATER_URL and HEADWATER_API_KEY from the environment; prints what it saw as one line of
// JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"

	"headwater-client-test/headwater"
)

var background = context.Background()

// A request body of a type from its JSON text.
func body[T any](format string, values ...any) T {
	var value T
	if err := json.Unmarshal([]byte(fmt.Sprintf(format, values...)), &value); err != nil {
		log.Fatal(err)
	}
	return value
}

// The value of a response: one of those that its operation documents for success.
func value[T any](body []byte, err error, values ...*T) *T {
	if err != nil {
		log.Fatal(err)
	}
	for _, each := range values {
		if each != nil {
			return each
		}
	}
	log.Fatalf("unexpected response: %s", body)
	return nil
}

// The job once it has ended, which must be a success.
func ended(client *headwater.ClientWithResponses, job *headwater.Job) *headwater.Job {
	for job.State == headwater.JobStateQueued || job.State == headwater.JobStateRunning {
		found, err := client.GetJobWithResponse(background, job.Id, &headwater.GetJobParams{Wait: pointer(int64(20))})
		job = value(found.Body, err, found.JSON200)
	}
	if job.State != headwater.JobStateSucceeded {
		log.Fatalf("job %s is %s: %+v", job.Id, job.State, job.Error)
	}
	return job
}

func write(client *headwater.ClientWithResponses, dataset string, rows string) *headwater.Job {
	request := body[headwater.CreateWriteJSONRequestBody](
		`{"operation": "upsert", "source": {"kind": "rows", "rows": [%s]}}`, rows)
	accepted, err := client.CreateWriteWithResponse(background, dataset, nil, request)
	return ended(client, value(accepted.Body, err, accepted.JSON200, accepted.JSON202))
}

func pointer[T any](value T) *T {
	return &value
}

func main() {
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("HEADWATER_API_KEY"))
		return nil
	}
	client, err := headwater.NewClientWithResponses(
		os.Getenv("HEADWATER_URL"), headwater.WithRequestEditorFn(authorize))
	if err != nil {
		log.Fatal(err)
	}

	registered, err := client.CreateDatasetWithResponse(background, nil, body[headwater.CreateDatasetJSONRequestBody](
		`{"name": "readings", "record_key": ["sensor"], "schema": {"fields": [
			{"name": "sensor", "type": "string"}, {"name": "value", "type": "double"}]}}`))
	dataset := value(registered.Body, err, registered.JSON201)
	first := write(client, dataset.Id, `{"sensor": "a", "value": 1.5}`)
	second := write(client, dataset.Id, `{"sensor": "a", "value": 2.5}`)

	changes, since := [][]any{}, int64(0)
	for len(changes) < 3 {
		read, err := client.ReadChangesWithResponse(background, dataset.Id, &headwater.ReadChangesParams{
			Since: pointer(strconv.FormatInt(since, 10)), Feed: pointer(headwater.Longpoll)})
		page := value(read.Body, err, read.JSON200)
		for _, item := range page.Changes {
			change, err := item.AsChange()
			if err != nil {
				log.Fatal(err)
			}
			changes = append(changes, []any{change.Offset, change.Op, change.Row})
		}
		if since, err = page.NextSince.AsNextPosition0(); err != nil {
			log.Fatal(err)
		}
	}

	committed, err := client.PutConsumerWithResponse(background, dataset.Id, "follower", nil,
		body[headwater.PutConsumerJSONRequestBody](`{"offset": %d}`, since))
	consumer := value(committed.Body, err, committed.JSON200, committed.JSON201)

	begun, err := client.CreateExportWithResponse(background, dataset.Id, nil,
		body[headwater.CreateExportJSONRequestBody](`{"query": "changes", "format": "ndjson"}`))
	export := value(begun.Body, err, begun.JSON202)
	running, err := client.GetJobWithResponse(background, export.Runs[0].JobId, nil)
	ended(client, value(running.Body, err, running.JSON200))
	finished, err := client.GetExportRunWithResponse(background, export.Id, export.Runs[0].Number)
	run := value(finished.Body, err, finished.JSON200)

	// The key of the row is null.
	refused, err := client.CreateWriteWithResponse(background, dataset.Id, nil,
		body[headwater.CreateWriteJSONRequestBody](
			`{"operation": "upsert", "source": {"kind": "rows", "rows": [{"sensor": null}]}}`))
	problem := value(refused.Body, err, refused.ApplicationproblemJSON422)

	seen, err := json.Marshal(map[string]any{
		"versions": []int64{*first.CommittedVersion, *second.CommittedVersion},
		"changes":  changes,
		"since":    since,
		"consumer": []any{consumer.Offset, consumer.Lag.Changes},
		"exported": []any{*run.Rows, len(run.Files)},
		"problem":  problem.Type,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(seen))
}
