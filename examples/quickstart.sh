#!/usr/bin/env bash
# Register, upsert, correct a row, read the feed, look back in time: Headwater with nothing but curl.
#
#   HEADWATER_URL=http://127.0.0.1:8080 HEADWATER_API_KEY=$(cat .headwater/operator.key) examples/quickstart.sh
set -euo pipefail
: "${HEADWATER_URL:?the URL of a running service, such as http://127.0.0.1:8080}"
: "${HEADWATER_API_KEY:?the key; make up keeps it in .headwater/operator.key}"

dataset="quickstart_sh_$(date +%s)_$$"
call() { # PATH [CURL OPTION]…
  local path=$1
  shift
  # The key goes in through a file descriptor: arguments are there for every process of the machine to see.
  curl --silent --show-error --fail-with-body --max-time 120 \
    --config <(printf 'header = "Authorization: Bearer %s"\n' "$HEADWATER_API_KEY") \
    "$@" "$HEADWATER_URL$path"
  echo
}

echo "== register $dataset"
call /datasets --json '{
  "name": "'"$dataset"'",
  "schema": {"fields": [
    {"name": "id", "type": "int64"},
    {"name": "item", "type": "string"},
    {"name": "price", "type": "decimal(10, 2)"}
  ]},
  "record_key": ["id"]
}'

echo "== upsert two rows, and wait for the commit; sent again with the same Idempotency-Key, it is done once"
call "/datasets/$dataset/writes" -H "Prefer: wait=60" -H "Idempotency-Key: first" --json '{
  "operation": "upsert",
  "source": {"kind": "rows", "rows": [
    {"id": 1, "item": "lamp", "price": "19.90"},
    {"id": 2, "item": "desk", "price": "240.00"}
  ]}
}'

echo "== correct one of them, as NDJSON"
call "/datasets/$dataset/writes?operation=upsert" -H "Prefer: wait=60" -H "Content-Type: application/x-ndjson" \
  --data-binary '{"id": 1, "item": "lamp", "price": "17.50"}'

echo "== the feed of changes: -C is what was there, +C takes its place"
call "/datasets/$dataset/changes?since=0" -H "Accept: application/x-ndjson"

echo "== the table now"
call "/datasets/$dataset/rows" -H "Accept: application/x-ndjson"

echo "== the table at version 1, before the correction"
call "/datasets/$dataset/rows?version=1" -H "Accept: application/x-ndjson"

echo "== the timeline"
call "/datasets/$dataset/timeline"
