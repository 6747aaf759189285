"""The migrated schema is the one the code expects, from every earlier one, with data in place."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from msgspec import structs
from sqlalchemy import Connection, create_engine, func, make_url, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

import migrations
from app.access.audit.repository import AuditStore
from app.access.audit.values import AccessVia, AuditFilter
from app.access.tenants.bootstrap import initialise, migrate
from app.access.tenants.repository.credentials import CredentialStore
from app.access.tenants.values import TokenClaims, TokenIdentity
from app.core.consumers.repository.consumers import ConsumerStore
from app.core.idempotency.repository import ReplyStore
from app.core.idempotency.values import KeyedRequest
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.kinds.rewrite import CompactionTask
from app.core.jobs.values import JobQueue, JobState
from app.core.timeline.tables import files
from app.core.timeline.values import Published
from app.features.monitoring.repository.stored_datasets import StoredDatasetStore
from app.features.retention.repository.expired_rows import ExpiredSubjectStore
from app.features.retention.repository.history import HistoryStore
from app.features.webhooks.repository.alert_feed import AlertFeedStore
from app.features.webhooks.repository.webhooks import WebhookStore
from app.features.webhooks.values import Reply
from app.infra.db.session import Database
from app.process.features import stores_on
from app.process.tables import metadata
from tests.support.lakehouse import RULES, commit_of, message, new_job
from tests.support.postgres import TestServer
from tests.support.shares import share
from tests.support.store_fixtures import Stores

FOLDER = Path(migrations.__file__).parent
SCRIPTS = ScriptDirectory(str(FOLDER))
REVISIONS = [script.revision for script in reversed(list(SCRIPTS.walk_revisions()))]
DATA = Path(__file__).parent / "data"
"""NNNN.sql: rows of what came with revision NNNN. The data of a revision are those of its file and all before it."""


@contextmanager
def owner_connection(server: TestServer, name: str) -> Iterator[Connection]:
    url = make_url(server.owner_url(name)).set(drivername="postgresql+psycopg")
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        yield connection


@contextmanager
def database_of(server: TestServer, revision: str, more: str = "") -> Iterator[str]:
    """The name of a database with the schema of a revision and its data. `more`: statements that add to these."""
    with server.fresh_database(template="template0") as name:
        with owner_connection(server, name) as connection:
            migrate(connection, revision)
        with server.administration(name) as administration:
            administration.execute(data_of(revision) + more)
        yield name


@contextmanager
def upgraded(server: TestServer, revision: str, more: str = "") -> Iterator[Database]:
    """Such a database after the upgrade, as the service uses it."""
    with database_of(server, revision, more) as name:
        initialise(server.owner_url(name), application_url=server.application_url(name))
        with closing(Database(server.application_url(name))) as database:
            yield database


@contextmanager
def upgraded_rows(server: TestServer, revision: str, more: str = "") -> Iterator[psycopg.Connection]:
    """Such a database after the upgrade, for queries."""
    with database_of(server, revision, more) as name:
        with owner_connection(server, name) as connection:
            migrate(connection)
        with server.administration(name) as administration:
            yield administration


def test_revisions_are_linear_and_named_expand_or_contract() -> None:
    assert len(SCRIPTS.get_heads()) == 1
    assert sorted(set(REVISIONS)) == REVISIONS
    for script in SCRIPTS.walk_revisions():
        assert Path(script.path).name.startswith(
            (f"{script.revision}_expand_", f"{script.revision}_contract_")
        )


def test_migrations_only_upgrade() -> None:
    for script in SCRIPTS.walk_revisions():
        specification = importlib.util.spec_from_file_location(f"revision_{script.revision}", script.path)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        assert not hasattr(module, "downgrade")
        assert inspect.isfunction(module.upgrade)


def test_metadata_equals_the_migrated_schema(postgres: TestServer) -> None:
    with postgres.fresh_database() as name, owner_connection(postgres, name) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


DEFINITIONS = {
    "columns": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
               pg_get_expr(d.adbin, d.adrelid), a.attcollation::regcollation::text
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
              AND NOT a.attisdropped AND c.relname <> 'alembic_version'
    """,
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace AND conrelid <> 0
              AND conrelid::regclass::text <> 'alembic_version'
    """,
    "indexes": """
        SELECT indexname, indexdef FROM pg_indexes
        WHERE schemaname = 'public' AND tablename <> 'alembic_version'
    """,
}


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_columns_constraints_and_indexes_of_the_metadata_equal_the_migrated_schema(
    postgres: TestServer, kind: str
) -> None:
    """Check constraints, orders of keys, collations, defaults: a database made from the metadata is equal."""
    found = []
    for template in ("template0", None):
        made = postgres.fresh_database(template=template) if template else postgres.fresh_database()
        with made as name:
            if template:
                with owner_connection(postgres, name) as connection:
                    metadata.create_all(connection)
                    connection.commit()
            with postgres.administration(name) as administration:
                found.append(set(administration.execute(DEFINITIONS[kind]).fetchall()))
    assert found[0] == found[1]


def data_of(revision: str) -> str:
    return "".join(
        path.read_text(encoding="utf-8") for path in sorted(DATA.glob("*.sql")) if path.stem <= revision
    )


TENANT, DATASET = "11111111-1111-7111-8111-111111111111", "22222222-2222-7222-8222-222222222222"


# Those of the newest releases in each run.
@pytest.mark.parametrize(
    "start", [*(pytest.param(start, marks=share(4)) for start in (None, *REVISIONS[:-3])), *REVISIONS[-3:]]
)
def test_every_earlier_schema_is_upgraded_with_its_data(postgres: TestServer, start: str | None) -> None:
    with postgres.fresh_database(template="template0") as name:
        if start is not None:
            with owner_connection(postgres, name) as connection:
                migrate(connection, start)
            with postgres.administration(name) as administration:
                administration.execute(data_of(start))
        result = initialise(postgres.owner_url(name), application_url=postgres.application_url(name))
        assert result.api_key is not None
        database = Database(postgres.application_url(name))
        if start is not None:
            check_old_data(Stores.on(database))
            check_old_consumers(Stores.on(database), since=start)
        assert Stores.on(database).keys.authenticate(result.api_key) is not None
        database.close()


def check_old_data(stores: Stores) -> None:
    """Old rows are read as they were, and the work that was under way goes on."""
    dataset = stores.catalog.get(TENANT, "orders")
    assert (dataset.id, dataset.version, dataset.next_offset) == (DATASET, 1, 2)
    [base] = stores.timeline.live_files(TENANT, DATASET, 1, None)
    assert base.statistics["2"].minimum == "a\0b"
    [segment] = stores.changelog.segments(TENANT, DATASET, 0, 2)
    assert (segment.first_offset, segment.file.row_count) == (0, 2)
    # No one has read the file, so it may take back any change up to its own.
    assert (segment.file.corrects_min, segment.file.corrects_max) == (0, 1)
    assert stores.changelog.correcting(TENANT, DATASET, 1, 1, since=0, limit=9) == [segment]
    assert stores.jobs.runnable(9, JobQueue.TASKS) == []
    assert len(stores.timeline.instants(TENANT, DATASET, page_size=9, page_token=None).items) == 2
    assert stores.outbox.relay(lambda messages: None, 10) == 1
    [waiting] = stores.jobs.claim(TENANT, DATASET, "worker", RULES)
    assert stores.jobs.accept(TENANT, new_job(DATASET, key="old-key")).job.id == waiting.id
    commit = commit_of([waiting], [message(3, changes=2)], read_version=1)
    assert stores_on(stores.database).timeline.publish(TENANT, [commit]) == (
        Published(version=2, first_offset=2, next_offset=4),
    )
    assert stores.jobs.get(TENANT, waiting.id).state is JobState.SUCCEEDED


def test_commits_of_before_have_no_metadata_and_later_ones_have(postgres: TestServer) -> None:
    with upgraded(postgres, "0031") as database:
        stores = Stores.on(database)
        [waiting] = stores.jobs.claim(TENANT, DATASET, "worker", RULES)
        commit = commit_of([waiting], [message(3, changes=2)], read_version=1)
        outcomes = (structs.replace(commit.outcomes[0], metadata={"run": "nightly-7"}),)
        stores_on(database).timeline.publish(TENANT, [structs.replace(commit, outcomes=outcomes)])
        listed = stores.changelog.commits_of_changes(TENANT, DATASET, 0, 4, bytes_max=99)
        assert [(each.version, each.metadata) for each in listed.commits] == [(2, ({"run": "nightly-7"},))]
        entries = stores.timeline.instants(TENANT, DATASET, page_size=9, page_token=None).items
        assert [entry.metadata for entry in entries] == [{}, {}]


def check_old_consumers(stores: Stores, *, since: str) -> None:
    """A consumer continues at its offset, behind the rows of every version."""
    if since < "0004":
        return
    assert ConsumerStore(stores.database).get(TENANT, DATASET, "reader").consumer.place == 1


MORE_COMMITS = f"""
    CREATE TEMPORARY TABLE listed AS SELECT * FROM files WHERE dataset_id = '{DATASET}' AND path = 'data/1.parquet';
    CREATE TEMPORARY TABLE committed AS SELECT * FROM commits WHERE dataset_id = '{DATASET}' AND version = 1;
    UPDATE committed SET version = 2, committed_at = committed_at + interval '1 s', bytes_added = 100;
    INSERT INTO commits SELECT * FROM committed;
    UPDATE committed SET version = 3, committed_at = committed_at + interval '1 s', bytes_added = 250;
    INSERT INTO commits SELECT * FROM committed;
    UPDATE files SET removed_version = 2 WHERE dataset_id = '{DATASET}' AND path = 'data/1.parquet';
    UPDATE listed SET added_version = 2, removed_version = 3, written_version = 1;
    INSERT INTO files SELECT * FROM listed;
    UPDATE listed SET path = 'data/3.parquet', added_version = 3, removed_version = NULL, written_version = 3,
        size_bytes = 250;
    INSERT INTO files SELECT * FROM listed;
"""


def test_upgrade_recounts_bytes_of_earlier_commits(postgres: TestServer) -> None:
    """A file that was listed again had been counted as new, and what went had not been counted at all."""
    with upgraded_rows(postgres, "0004", MORE_COMMITS) as administration:
        query = (
            "SELECT version, bytes_added, bytes_removed FROM commits WHERE dataset_id = %s ORDER BY version"
        )
        assert administration.execute(query, [DATASET]).fetchall() == [
            (1, 100, 0),
            (2, 0, 0),
            (3, 250, 100),
        ]


PENDING_FILES = f"""
    CREATE TEMPORARY TABLE listed AS SELECT * FROM files WHERE dataset_id = '{DATASET}' AND path = 'data/1.parquet';
    UPDATE listed SET path = 'data/2.log', kind = 'log', written_version = NULL;
    INSERT INTO files SELECT * FROM listed;
    UPDATE listed SET path = 'data/3.postponed', kind = 'postponed', written_version = 7;
    INSERT INTO files SELECT * FROM listed;
"""


def test_logs_of_earlier_versions_have_the_time_of_their_commit_if_it_is_known(postgres: TestServer) -> None:
    before = REVISIONS[REVISIONS.index("0035") - 1]
    with upgraded_rows(postgres, before, PENDING_FILES) as administration:
        query = """
            SELECT path, written_at IS NOT DISTINCT FROM committed_at, written_at IS NULL FROM files
            JOIN commits USING (tenant_id, dataset_id) WHERE dataset_id = %s AND version = 1 ORDER BY path
        """
        assert administration.execute(query, [DATASET]).fetchall() == [
            ("data/1.parquet", False, True),
            ("data/2.log", True, False),
            ("data/3.postponed", False, True),
        ]


def test_a_stored_reply_outlives_an_upgrade(postgres: TestServer) -> None:
    request = KeyedRequest(scope="/datasets", key="old-key", request_hash="hash-of-the-request")
    with upgraded(postgres, "0006") as database:
        outcome = ReplyStore(database).once(TENANT, request, pytest.fail, keep_seconds=60)
        assert (outcome.is_replay, outcome.reply.status, outcome.reply.body) == (
            True,
            201,
            b'{"name": "orders"}',
        )
        assert outcome.reply.headers["Location"] == f"/datasets/{DATASET}"


def test_tenants_of_earlier_versions_are_found_by_the_name_in_a_token(postgres: TestServer) -> None:
    with upgraded(postgres, "0007") as database:
        identity = TokenIdentity(issuer="https://issuer.example", subject="ada", expires_at=datetime.now(UTC))
        for reference in ("acme", TENANT):
            claims = TokenClaims(
                tenant=reference, identity=identity, scopes=frozenset(), grants=None, valid_seconds=60
            )
            principal = CredentialStore(database).admit(claims)
            assert principal is not None
            assert principal.tenant_id == TENANT


def test_subjects_of_earlier_versions_count_as_seen_at_the_upgrade(postgres: TestServer) -> None:
    with upgraded(postgres, "0014") as database:
        store = ExpiredSubjectStore(database)
        assert store.expire(TENANT, None, keep_seconds=3_600, limit=9).subject_count == 0
        assert store.expire(TENANT, None, keep_seconds=0, limit=9).subject_count == 1


RUNNING_JOBS = f"""
    INSERT INTO jobs (tenant_id, id, dataset_id, instant_id, kind, state, request, progress, rows, epoch, attempts,
                      started_at, group_id, lease_until)
    SELECT tenant_id, ('44444444-4444-7444-8444-44444444445' || tries)::uuid, dataset_id, 'run-' || tries, kind,
           'running', request, progress, rows, tries, tries, now() - interval '1 day', id, now()
    FROM jobs, unnest(ARRAY[6, 1]) AS tries WHERE state = 'queued' AND dataset_id = '{DATASET}';
"""


def test_attempts_that_run_at_the_upgrade_are_counted_from_their_start_if_it_is_known(
    postgres: TestServer,
) -> None:
    with upgraded_rows(postgres, "0015", RUNNING_JOBS) as administration:
        query = "SELECT attempts, claimed_at = started_at FROM jobs WHERE claimed_at IS NOT NULL ORDER BY attempts"
        assert administration.execute(query).fetchall() == [(1, True), (6, False)]


WAITING_COMPACTION = f"""
    INSERT INTO jobs (tenant_id, id, dataset_id, instant_id, kind, state, request, progress, rows, epoch, attempts,
                      alone)
    VALUES ('{TENANT}', '44444444-4444-7444-8444-444444444449', '{DATASET}', '20260102030405000000-cccccc',
            'compaction', 'queued', '{{"operation": "compact"}}', '{{"stage": "queued", "done": 0, "total": 0}}',
            '{{"inserted": 0, "updated": 0, "deleted": 0, "unchanged": 0, "quarantined": 0}}', 0, 0, true);
    INSERT INTO instants (tenant_id, dataset_id, id, action, operation, state, job_id, counts)
    VALUES ('{TENANT}', '{DATASET}', '20260102030405000000-cccccc', 'compaction', 'compact', 'requested',
            '44444444-4444-7444-8444-444444444449',
            '{{"inserted": 0, "updated": 0, "deleted": 0, "unchanged": 0, "quarantined": 0}}');
"""


def test_upgrade_moves_a_waiting_compaction_out_of_the_writes(postgres: TestServer) -> None:
    with upgraded(postgres, "0004", WAITING_COMPACTION) as database:
        stores = Stores.on(database)
        compaction = stores.jobs.claim_task(TENANT, DATASET, "worker", RULES)
        assert compaction is not None
        assert compaction.request == CompactionTask()
        assert [job.kind for job in stores.jobs.claim(TENANT, DATASET, "worker", RULES)] == [JobKind.WRITE]
        assert stores.jobs.succeed(TENANT, compaction.claim, {})


@share(2)
def test_blocked_migration_gives_up(postgres: TestServer) -> None:
    """Someone holds what a migration wants; who comes after the waiting migration would wait too."""
    with (
        postgres.fresh_database(template="template0") as name,
        owner_connection(postgres, name) as connection,
    ):
        with psycopg.connect(postgres.owner_url(name)) as holder:
            holder.execute("CREATE TABLE tenants (id int)")
            with pytest.raises(OperationalError, match="lock timeout"):
                migrate(connection)
            holder.rollback()
        connection.rollback()
        migrate(connection)
        # Outside of a migration, the limits are the connection's own again.
        assert connection.exec_driver_sql("SHOW lock_timeout").scalar_one() == "0"
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar_one() == "0"


def test_command_line_runs_the_same_migrations(postgres: TestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres.fresh_database(template="template0") as name:
        monkeypatch.setenv("HEADWATER_MIGRATION_DATABASE_URL", postgres.owner_url(name))
        config = Config()
        config.set_main_option("script_location", str(FOLDER))
        command.upgrade(config, "head")
        with postgres.administration(name) as administration:
            assert administration.execute("SELECT version_num FROM alembic_version").fetchall() == [
                (REVISIONS[-1],)
            ]


ID_FIELD = '{"id": 1, "name": "id", "type": "int64", "nullable": false, "doc": null}'
NESTED_FIELDS = """
    {"id": 4, "name": "lines", "type": "list<struct<`a.b`: int32, sku: string>>"},
    {"id": 5, "name": "tags", "type": "map<string, decimal(9, 2)>", "nullable": true, "doc": "n\\u0000ull"}
"""
EARLIER_FIELDS = """
    {"id": 3, "name": "old", "type": "struct<x: int8>"},
    {"id": 4, "name": "lines", "type": "list<struct<`a.b`: int32>>"}
"""
NESTED_SCHEMAS = f"""
    UPDATE datasets SET definition = replace(replace(definition::text,
        '{{"id": 2, "name": "note", "type": "string", "nullable": true, "doc": "n\\u0000ull"}}', '{NESTED_FIELDS}'),
        '"schema": {{"id": 1,', '"schema": {{"id": 2, "last_field_id": 5,')::json
    WHERE id = '{DATASET}';
    DELETE FROM schema_versions WHERE dataset_id = '{DATASET}';
    INSERT INTO schema_versions (tenant_id, dataset_id, schema_id, schema) VALUES
        ('{TENANT}', '{DATASET}', 1, '{{"id": 1, "fields": [{ID_FIELD}, {EARLIER_FIELDS}]}}'),
        ('{TENANT}', '{DATASET}', 2, '{{"id": 2, "last_field_id": 5, "fields": [{ID_FIELD}, {NESTED_FIELDS}]}}');
"""


AUDITED = f"""
    INSERT INTO audit (tenant_id, id, operation, method, route, resources, members, outcome, status)
    VALUES ('{TENANT}', '55555555-5555-7555-8555-555555555551', 'list_datasets', 'GET', '/datasets', '{{}}', '{{}}',
            'allowed', 200);
"""


def test_entries_of_before_are_of_the_api(postgres: TestServer) -> None:
    with upgraded(postgres, "0049", AUDITED) as database:
        page = AuditStore(database).entries(TENANT, AuditFilter(), page_size=9, page_token=None)
        assert [(each.operation, each.via) for each in page.items] == [("list_datasets", AccessVia.API)]


def test_members_of_earlier_schemas_get_one_id_for_all_versions(postgres: TestServer) -> None:
    before = REVISIONS[REVISIONS.index("0036") - 1]
    with upgraded(postgres, before, NESTED_SCHEMAS) as database:
        stores = Stores.on(database)
        now = stores.catalog.get(TENANT, DATASET).definition.schema
        listed = stores.catalog.schemas(TENANT, DATASET, page_size=9, page_token=None).items
        earlier, same = sorted((each.schema for each in listed), key=lambda each: each.id)
        assert now == same
        assert [field.member_ids or {} for field in earlier.fields] == [
            {},
            {"x": 6},
            {"element": 7, "element.`a.b`": 8},
        ]
        assert [field.member_ids or {} for field in now.fields] == [
            {},
            {"element": 7, "element.`a.b`": 8, "element.sku": 9},
            {"key": 10, "value": 11},
        ]
        assert now.highest_field_id == now.last_field_id == 11


def test_release_before_reads_the_schemas_that_have_ids_for_members(postgres: TestServer) -> None:
    before = REVISIONS[REVISIONS.index("0036") - 1]
    with upgraded_rows(postgres, before, NESTED_SCHEMAS) as administration:
        query = "SELECT schema::text FROM schema_versions UNION ALL SELECT definition::text FROM datasets"
        documents = [document for (document,) in administration.execute(query)]
        assert len(documents) > 2
        assert not any("member_ids" in document for document in documents)


def test_ranges_of_exports_of_before_are_made_once_and_snapshots_by_version(postgres: TestServer) -> None:
    before = REVISIONS[REVISIONS.index("0044") - 1]
    of_run = "tenant_id, export_id, since, until, job_id"
    repeat = f"INSERT INTO export_runs ({of_run}, number, version) SELECT {of_run}, %s, %s FROM export_runs LIMIT 1"
    with upgraded_rows(postgres, before) as administration:
        [count] = administration.execute(
            "SELECT count(*) FROM export_runs WHERE version IS NULL"
        ).fetchone() or [0]
        assert count == 1
        with pytest.raises(psycopg.errors.UniqueViolation):
            administration.execute(repeat, [2, None])
        administration.execute(repeat, [2, 7])
        administration.execute(repeat, [3, 8])
        with pytest.raises(psycopg.errors.UniqueViolation):
            administration.execute(repeat, [4, 8])
        planned = administration.execute("SELECT count(*) FROM exports WHERE planned_at IS NULL").fetchone()
        assert planned == (1,)


def test_files_of_before_are_summed_up(postgres: TestServer) -> None:
    before = REVISIONS[REVISIONS.index("0052") - 1]
    with upgraded(postgres, before) as database:
        sums = StoredDatasetStore(database).sums(files_on_disk=True, database_on_host=True)
    assert sums.quarantine_bytes > 0
    assert sums.database_bytes is not None


WEBHOOK = "33333333-3333-7333-8333-333333333333"
ALERT_WEBHOOK_OF_BEFORE = f"""
    INSERT INTO webhooks (tenant_id, id, definition, secret, state)
        VALUES ('{TENANT}', '{WEBHOOK}', '{{"url": "https://example.com", "events": "alerts"}}', 'whsec_', 'paused');
    UPDATE alert_feeds SET next_event = 2 WHERE tenant_id = '{TENANT}';
    INSERT INTO alert_events (tenant_id, number, dataset_id, event)
        VALUES ('{TENANT}', 1, '{DATASET}',
                '{{"id": "a", "alert": "view-failed", "severity": "warning", "state": "firing", "labels": {{}},
                   "summary": "", "detail": "", "action": "", "runbook": "", "fired_at": "2026-11-28T12:00:00Z"}}');
    INSERT INTO alert_followers (tenant_id, webhook_id, position) VALUES ('{TENANT}', '{WEBHOOK}', 1);
"""


def test_webhook_of_alerts_of_before_sends_all_events_from_its_position_on(postgres: TestServer) -> None:
    with upgraded(postgres, "0053", ALERT_WEBHOOK_OF_BEFORE) as database:
        webhook = WebhookStore(database).get(TENANT, WEBHOOK)
        assert (webhook.pending, webhook.paused_at) == (1, None)
        page = AlertFeedStore(database).after(TENANT, WEBHOOK, 1, 10)
        assert ([each.event.alert for each in page.items], page.next_since) == (["view-failed"], 2)


FILES_OF_BEFORE = f"""
    INSERT INTO files (tenant_id, dataset_id, path, file_group, partition_path, bucket, added_version, size_bytes,
                       row_count, checksum, schema_id, statistics)
        VALUES ('{TENANT}', '{DATASET}', 'of before', 'g', '', 0, 1, 1, 1, '', 1, '{{}}')
"""


def test_files_of_before_are_in_use_until_a_clean_finds_that_they_are_not(postgres: TestServer) -> None:
    before = REVISIONS[REVISIONS.index("0039") - 1]
    with upgraded(postgres, before, FILES_OF_BEFORE) as database:
        history = HistoryStore(database)
        assert history.removable(TENANT, unused_seconds=0) == []
        with database.tenant(TENANT) as connection:
            mark = update(files).where(files.c.path == "of before").values(unused_at=func.clock_timestamp())
            assert connection.execute(mark).rowcount == 1
        assert history.removable(TENANT, unused_seconds=60) == []
        assert history.removable(TENANT, unused_seconds=0) == [DATASET]
        assert history.remove_files(TENANT, DATASET, unused_seconds=0, limit=9) == 1


WEBHOOK_OF_BEFORE = f"""
    INSERT INTO webhooks (tenant_id, id, dataset_id, definition, secret, state)
        VALUES ('{TENANT}', '{WEBHOOK}', '{DATASET}', '{{"url": "https://example.com"}}', 'whsec_', 'paused');
    INSERT INTO consumers (tenant_id, dataset_id, name, kind, position)
        VALUES ('{TENANT}', '{DATASET}', 'webhook:{WEBHOOK}', 'webhook', 0);
"""


def test_webhooks_of_before_have_no_attempts_and_later_ones_are_recorded(postgres: TestServer) -> None:
    with upgraded(postgres, "0048", WEBHOOK_OF_BEFORE) as database:
        webhooks = WebhookStore(database)
        assert webhooks.attempts(TENANT, WEBHOOK) == ()
        webhooks.tested(TENANT, WEBHOOK, Reply(status=200, error=None, seconds=0.1, answer="thanks"))
        assert [each.answer for each in webhooks.attempts(TENANT, WEBHOOK)] == ["thanks"]
