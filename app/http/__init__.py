"""What the HTTP handlers of all features share.

    server                     bounds of connections, below the application
    auth, bearer               the principal of a request, and the scope that its handler requires
    credential_cache           principals by credential; changes of keys end them within seconds
    middleware, options        request ids, security headers, HEAD, OPTIONS, the access log
    request, json_body         request bodies: bounded, and decoded into one type
    body_stream, parameters    raw bodies; headers and query options, of which unknown ones are errors
    dependencies, in_flight    what handlers get by name; idempotency keys of running requests
    response, table_response   typed responses, Arrow streams
    event_stream, stored_file  server-sent events, downloads with ranges
    errors, problems           errors of requests; problem documents, and the statuses of errors of the lower wings
    encoding                   the JSON of a problem document
    limits, waiting            threads, rates and the shares of tenants; requests that wait without a thread
    openapi, health            the OpenAPI document; `/health`

A handler is a typed function in the `handlers` of a feature. Its signature is also the source of its OpenAPI
operation:

    @get("/datasets/{dataset:str}/metastore")
    async def get_metastore_report(
        path_dataset: Provided[Dataset], metastore_reports: Provided[MetastoreReports], threads: Provided[Threads]
    ) -> MetastoreReportResponse: ...
"""
