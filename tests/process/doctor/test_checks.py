"""The verdicts of the checks that need no server."""

from __future__ import annotations

from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import msgspec
import pytest
from pyspark import __version__

from app.infra.db.examination import Login
from app.infra.runtime.loopback import free_port
from app.infra.settings import Settings
from app.process.doctor.postgres import clock_check, login_check, schema_check, version_check
from app.process.doctor.redis import redis_check
from app.process.doctor.spark import SparkCluster, SparkWorker, cluster_check, masters, spark_checks
from app.process.doctor.storage import disk_check, storage_checks
from app.process.doctor.values import Diagnosis, Verdict
from migrations import revisions

LEAST = {"HEADWATER_DATABASE_URL": "postgresql://u@h/d", "HEADWATER_REDIS_URL": "redis://h/0"}
FAILED, OK, WARNING = Verdict.FAILED, Verdict.OK, Verdict.WARNING


def settings(**variables: str) -> Settings:
    return Settings.from_environment({**LEAST, **variables})


def has(found: Diagnosis, verdict: Verdict, words: str) -> bool:
    return found.verdict is verdict and words in found.detail


def test_postgres_15_is_too_old_and_16_is_not() -> None:
    assert has(version_check(15, "15.18"), FAILED, "is PostgreSQL 15.18; Headwater needs 16 or later")
    assert version_check(16, "16.2").verdict is OK


def test_clocks_may_differ_by_a_few_seconds() -> None:
    assert clock_check(timedelta(seconds=-4)).verdict is OK
    assert has(clock_check(timedelta(seconds=9)), WARNING, "9.0 s ahead of the clock of this machine")
    assert has(clock_check(timedelta(seconds=-9)), WARNING, "9.0 s behind")


def test_logins_need_their_roles_and_no_more() -> None:
    login = Login(name="l", superuser=False, bypasses_row_security=False, own_table_count=0, missing=())
    assert login_check(login, "URL").verdict is OK
    without = msgspec.structs.replace(login, missing=("headwater_relay",))
    assert has(login_check(without, "URL"), FAILED, "l of URL may not take headwater_relay")
    for more in ({"superuser": True}, {"bypasses_row_security": True}):
        found = login_check(msgspec.structs.replace(login, **more), "URL")
        assert has(found, WARNING, "bypasses row level security")
    assert has(
        login_check(msgspec.structs.replace(login, own_table_count=2), "URL"), WARNING, "owns the schema"
    )


def test_pending_migrations_are_named() -> None:
    known = ["0001", "0002", "0003"]
    assert schema_check("0003", [], known).verdict is OK
    assert has(schema_check("0001", [], known), FAILED, "pending (0002, 0003): run `headwater init`")
    assert has(schema_check("", ["jobs"], known), FAILED, "the database is empty")
    assert has(schema_check("0004", [], known), FAILED, "0004, which is of a later release")
    # A login that may not read the last migration compares the tables.
    assert schema_check(None, [], known).verdict is OK
    many = [f"t{number}" for number in range(7)]
    assert has(schema_check(None, many, known), FAILED, "lacks t0, t1, t2, t3, t4 and 2 others")


def test_migrations_of_this_release_are_known_in_order() -> None:
    assert revisions()[0] == "0001"
    assert revisions() == sorted(revisions())


def test_redis_before_6_2_is_too_old_and_valkey_is_named() -> None:
    assert has(redis_check({"redis_version": "6.0.20"}), WARNING, "is Redis 6.0.20")
    assert redis_check({"redis_version": "6.2.14"}).detail == "Redis 6.2.14"
    valkey = {"redis_version": "7.2.4", "valkey_version": "9.1.0"}
    assert redis_check(valkey).detail == "Valkey 9.1.0"


def worker(*, cores: int, used: int, memory: int = 4096, state: str = "ALIVE") -> SparkWorker:
    return SparkWorker(state=state, cores=cores, coresused=used, memory=memory, memoryused=used * 1024)


def test_cores_of_the_cluster_decide_whether_another_worker_has_room() -> None:
    def found(*workers: SparkWorker) -> Diagnosis:
        return cluster_check(SparkCluster(status="ALIVE", workers=workers), settings())

    assert has(found(worker(cores=2, used=1), worker(cores=2, used=2)), OK, "1 of 4 cores are free on 2")
    assert has(found(worker(cores=2, used=2)), WARNING, "another worker process would wait")
    assert has(found(worker(cores=2, used=0, memory=512)), FAILED, "no Spark worker has the 1 cores and 1024")
    assert has(found(worker(cores=2, used=0, state="DEAD")), FAILED, "no live Spark worker")
    assert cluster_check(SparkCluster(status="STANDBY"), settings()).verdict is FAILED


def test_all_masters_of_a_url_are_tried() -> None:
    assert masters("spark://a:7077,b:7078") == [("a", 7077), ("b", 7078)]


def test_master_that_does_not_answer_is_named() -> None:
    master = f"spark://127.0.0.1:{free_port()}"
    [found] = spark_checks(settings(HEADWATER_SPARK_MASTER=master))
    assert has(found, FAILED, f"does not answer at {master.removeprefix('spark://')}")


@pytest.mark.parametrize(("version", "verdict"), [("3.5.1", FAILED), ("OWN", OK)])
def test_cluster_of_another_version_is_refused(version: str, verdict: Verdict) -> None:
    page = f'<span class="version me-3">{__version__ if version == "OWN" else version}</span>'
    cluster = SparkCluster(status="ALIVE", workers=(worker(cores=4, used=1),))
    report = msgspec.json.encode(cluster)

    class Interface(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = report if self.path == "/json/" else page.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    with HTTPServer(("127.0.0.1", 0), Interface) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        place = f"127.0.0.1:{server.server_port}"
        variables = {
            "HEADWATER_SPARK_MASTER": f"spark://{place}",
            "HEADWATER_SPARK_UI_URL": f"http://{place}",
        }
        versions, cores = spark_checks(settings(**variables))
        server.shutdown()
    assert versions.verdict is verdict
    assert has(cores, OK, "3 of 4 cores are free on 1")


def test_storage_is_written_read_and_left_empty(tmp_path: Path) -> None:
    variables = {"HEADWATER_DATA_DIR": str(tmp_path), "HEADWATER_STORAGE_URI": (tmp_path / "s").as_uri()}
    new, _ = storage_checks(settings(**variables))
    assert has(new, OK, "is made at the first start")
    (tmp_path / "s").mkdir()
    found, disk = storage_checks(settings(**variables))
    assert has(found, OK, "written, read, listed and deleted")
    assert not [path for path in (tmp_path / "s").rglob("*") if path.is_file()]
    assert disk.verdict is OK
    least = {"HEADWATER_DISK_FREE_BYTES_MIN": str(2**62)}
    for check in storage_checks(settings(**variables, **least)):
        assert has(check, FAILED, "HEADWATER_DISK_FREE_BYTES_MIN")


def test_missing_storage_and_full_disk_are_reported(tmp_path: Path) -> None:
    (tmp_path / "storage-made").write_text("an earlier start")
    variables = {"HEADWATER_DATA_DIR": str(tmp_path), "HEADWATER_STORAGE_URI": (tmp_path / "s").as_uri()}
    found, _ = storage_checks(settings(**variables))
    assert has(found, FAILED, "a file cannot be written: The storage is not available")
    assert has(disk_check(tmp_path, 2**62), FAILED, "HEADWATER_DISK_FREE_BYTES_MIN")
    file = tmp_path / "file"
    file.touch()
    assert has(disk_check(file, 0), FAILED, "cannot be written")
