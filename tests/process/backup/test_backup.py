"""Backups of the database: every row comes back, and the storage keeps what it refers to meanwhile."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from app.access.tenants.bootstrap import initialise
from app.access.tenants.values import KeyScope, Principal
from app.features.retention.repository.ending_tenants import EndingTenantStore
from app.features.retention.repository.references import ReferenceStore
from app.features.retention.service.end_tenants import EndTenants
from app.features.retention.service.reaper import Reap
from app.infra.db.copying import EPOCHS_SKIPPED, deletion_hold
from app.infra.db.session import ADMINISTRATOR_ROLE, Database
from app.infra.errors import Unavailable
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id, new_instant_id, random_hex
from app.kernel.format.file_group import Slot
from app.kernel.format.paths import Folder, attempt_name, dataset_prefix, written_path
from app.process.backup import BackupError, BackupManifest, back_up, restore
from app.process.backup.folder import read_manifest
from app.process.tables import metadata
from migrations import revisions
from tests.support.lakehouse import definition, new_job
from tests.support.populated_tenant import populate
from tests.support.postgres import TestServer
from tests.support.store_fixtures import Stores

OPERATOR = Principal(tenant_id=new_id(), actor=new_id(), scopes=frozenset({KeyScope.OPERATE}))
SLOT = Slot(partition_path="", bucket=0)
LOGINS = {"backup_owner": "CREATEROLE", "backup_service": "NOCREATEROLE", "backup_admin": "NOCREATEROLE"}


_PROCESS = (
    "kind",
    "host",
    "pid",
    "version",
    "disk_free_bytes",
    "disk_total_bytes",
    "disk_folder",
    "resident_bytes",
    "faults",
)
# The latest columns: of exports of versions, and of the register of processes, which was one of workers.
ALERTS_OF_TENANTS = ("alert_feeds", "alert_events", "alert_followers")
LATELY = (("exports", "planned_at"), ("export_runs", "version"), *(("workers", name) for name in _PROCESS))


class Source:
    """A database with rows in every table, of an owner who is no superuser."""

    def __init__(self, postgres: TestServer, name: str) -> None:
        self.postgres, self.name = postgres, name
        self.owner, self.service, self.admin = (url_of(postgres, name, login) for login in LOGINS)

    def rows(self, name: str | None = None) -> dict[str, list[str]]:
        """All rows as texts, by table, as a superuser reads them."""
        with self.postgres.administration(name or self.name) as connection:
            connection.execute("SET timezone = 'UTC'")
            return {
                table.name: [
                    row[0]
                    for row in connection.execute(
                        sql.SQL("SELECT t::text FROM {} t ORDER BY 1").format(sql.Identifier(table.name))
                    )
                ]
                for table in metadata.sorted_tables
            }


def url_of(postgres: TestServer, name: str, login: str) -> str:
    address = make_url(postgres.owner_url(name)).set(username=login, password="p")
    return address.render_as_string(hide_password=False)


@pytest.fixture(scope="module")
def logins(postgres: TestServer) -> Iterator[None]:
    with postgres.administration() as administration:
        for login, rights in LOGINS.items():
            statement = sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'p' {}")
            administration.execute(statement.format(sql.Identifier(login), sql.SQL(rights)))
        administration.execute(
            "GRANT headwater_app, headwater_relay, headwater_admin, headwater_monitor TO backup_owner "
            "WITH ADMIN TRUE, INHERIT FALSE"
        )
        yield
        administration.execute("DROP ROLE backup_service, backup_admin, backup_owner")


@pytest.fixture(scope="module")
def new_database(postgres: TestServer, logins: None) -> Iterator[Callable[[], str]]:
    """Makes empty databases of the owner."""
    made = []

    def make() -> str:
        context = postgres.fresh_database(template="template0")
        made.append((context, context.__enter__()))
        with postgres.administration() as administration:
            statement = sql.SQL("ALTER DATABASE {} OWNER TO backup_owner")
            administration.execute(statement.format(sql.Identifier(made[-1][1])))
        return made[-1][1]

    yield make
    for context, name in made:
        # Grants of the database's owner would keep the logins from being dropped.
        with postgres.administration(name) as inside:
            inside.execute("DROP OWNED BY backup_service, backup_admin, backup_owner CASCADE")
        with postgres.administration() as administration:
            statement = sql.SQL("ALTER DATABASE {} OWNER TO CURRENT_USER")
            administration.execute(statement.format(sql.Identifier(name)))
        context.__exit__(None, None, None)


@pytest.fixture(scope="module")
def source(postgres: TestServer, new_database: Callable[[], str]) -> Iterator[Source]:
    source = Source(postgres, new_database())
    initialise(source.owner, application_url=source.service, administration_url=source.admin)
    database = Database(source.service)
    administration = Database(source.admin, role=ADMINISTRATOR_ROLE)
    stores = Stores.on(database, administration)
    populate(stores)
    populate(stores)
    # Texts that the format of a backup could damage, and jobs that ended and that wait.
    tenant_id = stores.tenants.add_tenant("tab\tnewline\nbackslash\\N quote' Ünïcode")
    dataset = stores.catalog.create(tenant_id, new_id(), definition())
    stores.jobs.accept(tenant_id, new_job(dataset.id))
    ending = populate(stores)
    stores.tenants.begin_deletion(ending, confirmation=stores.tenants.tenant(ending).name, actor=OPERATOR)
    with postgres.administration(source.name) as superuser:
        superuser.execute("INSERT INTO workers (id, polled_at) VALUES ('w', now())")
        superuser.execute("INSERT INTO leaders (task, owner, lease_until) VALUES ('metrics', 'p', now())")
        superuser.execute("INSERT INTO alerts (name, phase, since) VALUES ('disk-low', 'pending', now())")
    yield source
    database.close()
    administration.close()


@pytest.fixture(scope="module")
def backup(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("backups") / "first"
    back_up(source.owner, folder)
    return folder


def restored(source: Source, name: str, folder: Path) -> BackupManifest:
    owner, service, admin = (url_of(source.postgres, name, login) for login in LOGINS)
    return restore(owner, folder, application_url=service, administration_url=admin)[0]


def test_every_row_of_every_table_is_restored(
    source: Source, backup: Path, new_database: Callable[[], str], postgres: TestServer
) -> None:
    before = source.rows()
    assert [table for table, rows in before.items() if not rows] == []
    name = new_database()
    manifest = restored(source, name, backup)
    assert manifest.rows == sum(map(len, before.values()))
    with postgres.administration(name) as connection:
        # Unfinished jobs continue with other epochs: names of files that lost attempts have used do not come again.
        changed = connection.execute(
            "UPDATE jobs SET epoch = epoch - %s WHERE epoch >= %s", [EPOCHS_SKIPPED] * 2
        )
        assert changed.rowcount == len(
            [row for row in before["jobs"] if ",queued," in row or ",running," in row]
        )
    assert source.rows(name) == before


def test_restored_database_is_protected_and_continues_its_numbers(
    source: Source, backup: Path, new_database: Callable[[], str], postgres: TestServer
) -> None:
    name = new_database()
    restored(source, name, backup)
    tables = "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class"
    sequences = "SELECT sequencename, last_value FROM pg_sequences"
    for query in (f"{tables} WHERE relnamespace = 'public'::regnamespace", sequences):
        found = []
        for each in (source.name, name):
            with postgres.administration(each) as connection:
                found.append(set(connection.execute(query.encode()).fetchall()))
        assert found[0] == found[1]
        assert found[0]
    with psycopg.connect(url_of(postgres, name, "backup_owner")) as owner:
        assert owner.execute("SELECT count(*) FROM datasets").fetchall() == [(0,)]


def test_restore_refuses_a_database_with_rows_and_changes_nothing(
    source: Source, backup: Path, new_database: Callable[[], str]
) -> None:
    name = new_database()
    owner = url_of(source.postgres, name, "backup_owner")
    initialise(owner)
    before = source.rows(name)
    with pytest.raises(BackupError, match="not empty"):
        restored(source, name, backup)
    assert source.rows(name) == before


def test_restore_that_fails_leaves_no_rows_and_can_be_repeated(
    source: Source, backup: Path, new_database: Callable[[], str], tmp_path: Path
) -> None:
    """As if the process was killed before its last table was loaded."""
    folder = copy_of(backup, tmp_path)
    manifest = read_manifest(folder)
    last = manifest.tables[-1]
    path = folder / last.file
    (folder / "manifest.json").write_bytes(
        msgspec.json.encode(
            msgspec.structs.replace(
                manifest,
                tables=(*manifest.tables[:-1], msgspec.structs.replace(last, rows=last.rows + 1)),
            )
        )
    )
    name = new_database()
    with pytest.raises(BackupError, match=path.name):
        restored(source, name, folder)
    # The migration of the schema makes a secret.
    assert {table for table, rows in source.rows(name).items() if rows} <= {"table_key_secrets"}
    restored(source, name, backup)
    assert {table: len(rows) for table, rows in source.rows(name).items()} == {
        table: len(rows) for table, rows in source.rows().items()
    }


@pytest.fixture
def strange_logins(postgres: TestServer) -> Iterator[dict[str, str]]:
    """An owner with CREATEROLE who may grant none of the roles, which another login made."""
    with postgres.administration() as administration:
        administration.execute("CREATE ROLE new_owner LOGIN PASSWORD 'p' CREATEROLE")
        administration.execute("CREATE ROLE new_service LOGIN PASSWORD 'p'")
    yield {"owner": "new_owner", "service": "new_service", "admin": "new_admin"}
    with postgres.administration() as administration:
        administration.execute("DROP ROLE IF EXISTS new_admin, new_service, new_owner")


def test_restore_names_the_sql_that_an_owner_needs_before_it_loads_rows(
    source: Source, backup: Path, strange_logins: dict[str, str], postgres: TestServer
) -> None:
    with postgres.fresh_database(template="template0") as name:
        owner, service, admin = (url_of(postgres, name, login) for login in strange_logins.values())
        with pytest.raises(BackupError, match="As a superuser, run this SQL") as refused:
            restore(owner, backup, application_url=service, administration_url=admin)
        statements = str(refused.value).splitlines()[1:]
        assert statements == [
            "CREATE ROLE new_admin LOGIN PASSWORD '…';",
            f"ALTER DATABASE {name} OWNER TO new_owner;",
            "GRANT headwater_admin, headwater_app, headwater_monitor, headwater_relay TO new_owner "
            "WITH ADMIN TRUE, INHERIT FALSE, SET TRUE;",
        ]
        with postgres.administration(name) as superuser:
            assert superuser.execute("SELECT to_regclass('public.tenants')").fetchall() == [(None,)]
            for statement in statements:
                superuser.execute(statement.replace("'…'", "'p'").encode())
        manifest, _ = restore(owner, backup, application_url=service, administration_url=admin)
        assert manifest.rows == sum(map(len, source.rows().values()))
        # The roles of a login go with what it was granted.
        with postgres.administration(name) as superuser:
            superuser.execute(f"ALTER DATABASE {name} OWNER TO CURRENT_USER".encode())
            superuser.execute("DROP OWNED BY new_service, new_admin, new_owner CASCADE")


def test_restore_whose_schema_fails_after_its_rows_says_what_completes_it(
    source: Source,
    backup: Path,
    new_database: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise Unavailable("another initialisation has not ended")

    name = new_database()
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["app.process.backup.restore"], "initialise", fail)
        with pytest.raises(BackupError, match=r"all rows are loaded.*`headwater init`.*has not ended"):
            restored(source, name, backup)
    with pytest.raises(BackupError, match=r"not empty.*complete it with `headwater init`"):
        restored(source, name, backup)
    owner, service, admin = (url_of(source.postgres, name, login) for login in LOGINS)
    assert initialise(owner, application_url=service, administration_url=admin).api_key is None


def copy_of(folder: Path, place: Path) -> Path:
    copy = place / "copy"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    return copy


def damaged_file(folder: Path) -> None:
    path = folder / "jobs.copy.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"\n"))


def missing_file(folder: Path) -> None:
    (folder / "files.copy.gz").unlink()


def missing_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def changed(folder: Path, **members: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | members))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damaged_file, "is damaged"),
        (missing_file, "cannot be read"),
        (missing_manifest, "no complete backup"),
        (lambda folder: changed(folder, revision="9999"), "of a later release"),
        (lambda folder: changed(folder, format=2), "the format 2"),
        (lambda folder: changed(folder, tables=1), "not the manifest"),
    ],
)
def test_damaged_backup_is_refused_before_anything_is_done(
    source: Source,
    backup: Path,
    new_database: Callable[[], str],
    tmp_path: Path,
    damage: Callable[[Path], None],
    message: str,
) -> None:
    folder = copy_of(backup, tmp_path)
    damage(folder)
    name = new_database()
    with pytest.raises(BackupError, match=message):
        restored(source, name, folder)
    with source.postgres.administration(name) as connection:
        assert connection.execute("SELECT to_regclass('tenants')").fetchall() == [(None,)]


def test_backup_of_an_earlier_schema_is_upgraded(
    source: Source, backup: Path, new_database: Callable[[], str], tmp_path: Path
) -> None:
    """The columns and tables of later migrations are missing in it."""
    folder = copy_of(backup, tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    later = {
        "sources",
        "source_items",
        "dataset_labels",
        "service_results",
        "table_key_secrets",
        "rendered_files",
        "shares",
        "shared_datasets",
        "recipients",
        "share_tokens",
        "dataset_hours",
        "dataset_samples",
        *("leaders", "alerts", "console_links", "console_sessions", *ALERTS_OF_TENANTS),
    }
    for table in manifest["tables"]:
        if table["name"] in later:
            (folder / table["file"]).unlink()
    manifest["tables"] = [table for table in manifest["tables"] if table["name"] not in later]
    added = [
        ("workers", "executors"),
        *LATELY,
        ("heads", "watermark"),
        ("commits", "watermark"),
        ("commits", "metadata"),
        ("commits", "metadata_bytes"),
        ("instants", "metadata"),
        ("jobs", "transforms"),
        ("jobs", "contended"),
        ("jobs", "slow"),
        ("jobs", "timings"),
        ("jobs", "replans"),
        ("writer_batches", "rows_digest"),
        ("sources", "planner"),
        ("consumers", "snapshot"),
        *(("webhooks", "registry_password"), ("webhooks", "recent_attempts"), ("webhooks", "paused_at")),
        ("webhook_deliveries", "since_snapshot"),
        ("webhook_deliveries", "next_snapshot"),
        ("datasets", "description"),
        *(("datasets", "expected_every_seconds"), ("audit", "via")),
        ("datasets", "member_ids"),
        ("schema_versions", "member_ids"),
        ("files", "written_at"),
        ("files", "layout"),
        ("files", "unused_at"),
    ]
    for table in manifest["tables"]:
        for column in [column for name, column in added if name == table["name"]]:
            at = table["columns"].index(column)
            table["columns"].pop(at)
            lines = gzip.decompress((folder / table["file"]).read_bytes()).splitlines()
            rows = [line.split(b"\t") for line in lines]
            left = b"".join(b"\t".join(row[:at] + row[at + 1 :]) + b"\n" for row in rows)
            packed = gzip.compress(left)
            (folder / table["file"]).write_bytes(packed)
            table["sha256"] = hashlib.sha256(packed).hexdigest()
    changed(folder, revision="0019", tables=manifest["tables"])
    name = new_database()
    restored(source, name, folder)
    with source.postgres.administration(name) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [
            (revisions()[-1],)
        ]
        assert connection.execute("SELECT id, executors FROM workers").fetchall() == [("w", None)]


def test_backup_is_private_and_needs_a_folder_of_its_own(source: Source, backup: Path) -> None:
    assert {file.stat().st_mode & 0o077 for file in [backup, *backup.iterdir()]} == {0}
    with pytest.raises(BackupError, match="not empty"):
        back_up(source.owner, backup)


def test_backup_of_another_release_or_an_empty_database_is_refused(
    source: Source, new_database: Callable[[], str], tmp_path: Path
) -> None:
    name = new_database()
    with pytest.raises(BackupError, match="at migration none"):
        back_up(url_of(source.postgres, name, "backup_owner"), tmp_path / "a")
    with pytest.raises(BackupError, match="cannot be backed up"):
        back_up(url_of(source.postgres, "missing", "backup_owner"), tmp_path / "b")
    assert not (tmp_path / "a" / "manifest.json").exists()


def test_table_that_no_role_reads_completely_is_an_error(
    postgres: TestServer, source: Source, tmp_path: Path
) -> None:
    """A migration that forgot a policy must not make backups that lack rows."""
    with postgres.administration(source.name) as superuser:
        superuser.execute("ALTER POLICY tenant ON commits TO headwater_relay")
        try:
            with pytest.raises(BackupError, match="commits"):
                back_up(source.owner, tmp_path / "new")
        finally:
            superuser.execute("ALTER POLICY tenant ON commits TO headwater_app")


# --- the storage ---


def test_storage_is_copied_after_the_rows_while_no_file_is_deleted(source: Source, tmp_path: Path) -> None:
    probe = (
        "import psycopg, sys; from pathlib import Path; from app.infra.db.deletion_hold import HOLD_LOCK;"
        "folder, url, out = sys.argv[1:];"
        "held = psycopg.connect(url).execute('SELECT NOT pg_try_advisory_lock_shared(%s)', [HOLD_LOCK]).fetchone();"
        "Path(out).write_text(f\"{held[0]} {len(list(Path(folder).glob('*.copy.gz')))}\")"
    )
    folder, out = tmp_path / "new", tmp_path / "out"
    command = [sys.executable, "-c", probe, str(folder), source.service, str(out)]
    manifest = back_up(source.owner, folder, storage_command=command)
    assert out.read_text() == f"True {len(metadata.tables)}"
    assert manifest.storage_copied
    with psycopg.connect(source.service) as connection:
        free = connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert free.fetchall() == [(0,)]


TERMINATE = (
    "import psycopg, sys; psycopg.connect(sys.argv[1], autocommit=True).execute("
    "\"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'headwater backup'\")"
)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([sys.executable, "-c", "raise SystemExit(7)"], "exit status 7"),
        (["/missing/program"], "cannot be run"),
        ([sys.executable, "-c", "import time; time.sleep(600)"], "within 1 s"),
        ([sys.executable, "-c", TERMINATE, "OWNER"], "connection was lost"),
    ],
    ids=["fails", "missing", "hangs", "hold is lost"],
)
def test_backup_without_its_storage_is_not_complete(
    source: Source, tmp_path: Path, command: list[str], message: str
) -> None:
    owner = source.postgres.owner_url(source.name)
    words = [owner if word == "OWNER" else word for word in command]
    seconds = 1 if "import time; time.sleep(600)" in words else 60
    with pytest.raises(BackupError, match=message):
        back_up(source.owner, tmp_path / "new", storage_command=words, storage_seconds_max=seconds)
    with pytest.raises(BackupError, match="no complete backup"):
        read_manifest(tmp_path / "new")


def test_files_are_kept_until_a_backup_has_ended(stores: Stores, database_url: str, tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    tenant_id = populate(stores)
    dataset = stores.catalog.create(tenant_id, new_id(), definition("mine"))
    attempt = attempt_name(new_instant_id(), 1, 1)
    orphan = written_path(dataset_prefix(tenant_id, dataset.id), Folder.DATA, SLOT, attempt, random_hex(4))
    with storage.create(orphan) as file:
        file.write(b"1")
    reap = Reap(
        references=ReferenceStore(stores.database),
        storage=storage,
        grace_seconds=-60,
        upload_seconds_max=60,
        result_seconds_max=60,
    )
    end = EndTenants(
        tenants=EndingTenantStore(stores.database),
        catalog=stores.catalog,
        storage=storage,
        lease_seconds=0,
        grace_seconds=3_600,
    )
    with deletion_hold(database_url):
        reap.run()
        assert storage.size(orphan) == 1
        with pytest.raises(Exception, match="another backup"), deletion_hold(database_url, seconds_max=0.1):
            pass
    other = stores.catalog.create(tenant_id, new_id(), definition("other"))
    kept = written_path(dataset_prefix(tenant_id, other.id), Folder.DATA, SLOT, attempt, random_hex(4))
    with storage.create(kept) as file:
        file.write(b"1")
    stores.tenants.begin_deletion(
        tenant_id, confirmation=stores.tenants.tenant(tenant_id).name, actor=OPERATOR
    )
    with deletion_hold(database_url):
        end.run()
        assert storage.size(kept) == 1
    end.run()
    assert list(storage.list(tenant_id)) == []
