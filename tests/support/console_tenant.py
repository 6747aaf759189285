"""A tenant with everything that pages of the console show, and one that has nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx2
from sqlalchemy import text

from app.core.jobs.repository.processes import ProcessStore
from app.core.jobs.values import ProcessKind, ProcessReport
from app.features.monitoring.compose import sample_datasets
from app.features.retention.compose import sample_usage
from tests.support.receiver import Receiver
from tests.support.service import SCOPES, Service
from tests.support.webhooks import tenant_of, work_until

Row = dict[str, Any]
LONG: Final = "x" * 700
HOSTILE: Final = "<script>document.title='taken'</script><img src=x onerror=alert(1)> \"'&amp;"
_AREAS: Final = ("paint", "press", "weld")
_SENSORS: Final = ("roof-2", "roof-3", "cellar", "line-4")
_READINGS: Final = {
    "name": "readings",
    "description": "What the sensors of the plant have measured.",
    "labels": {"team": "plant", "tier": "gold"},
    "schema": {
        "fields": [
            {"name": "area", "type": "string", "nullable": False},
            {"name": "sensor", "type": "string"},
            {"name": "taken", "type": "timestamp", "nullable": False, "doc": "by the clock of the sensor"},
            {"name": "value", "type": "double"},
            {"name": "unit", "type": "string"},
        ]
    },
    "record_key": ["area", "sensor", "taken"],
    "event_time_field": "taken",
    "partition_by": ["area"],
}
_ORDERS: Final = {
    "name": "orders",
    "schema": {
        "fields": [
            {"name": "id", "type": "int64"},
            {"name": "customer", "type": "string"},
            {"name": "status", "type": "string"},
            {"name": "total", "type": "decimal(10, 2)"},
            {"name": "placed", "type": "timestamp"},
            {"name": "note", "type": "string"},
        ]
    },
    "record_key": ["id"],
}
_ALARMS: Final = {
    "name": "alarms",
    "schema": {
        "fields": [
            {"name": "at", "type": "timestamp"},
            {"name": "what", "type": "string"},
            {"name": "details", "type": "map<string, list<int32>>"},
        ]
    },
}
# In the pages of the reference, which are the same for all.
_DOCUMENTED: Final = {"operation": "read_rows", "problem": "not-found"}
_VIEW: Final = "SELECT customer, count(*) AS orders, sum(total) AS total FROM orders GROUP BY customer"


@dataclass(frozen=True, kw_only=True)
class ConsoleTenant:
    """A tenant: its key, the id, and a value for each variable in the paths of pages."""

    api_key: str
    tenant_id: str
    variables: Mapping[str, str]

    def address(self, path: str) -> str:
        """The address of a page, whose path has the form of routes."""
        for name, value in self.variables.items():
            path = path.replace(f"{{{name}:str}}", value).replace(f"{{{name}:int}}", value)
        assert "{" not in path, f"no value for the variables of {path}"
        return f"/console{path}"


class _Filling:
    """Fills a tenant over HTTP."""

    def __init__(self, service: Service, client: httpx2.Client, receiver: Receiver) -> None:
        self.service = service
        self.client = client
        self.receiver = receiver
        self.now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Row:
        """The JSON of a response, which must be a success."""
        answer = self.client.request(method, path, json=body, headers=headers)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        members: Row = answer.json() if answer.content else {}
        return members

    def write(self, dataset: str, operation: str, *rows: Row, **more: Any) -> Row:
        """A job of a write, which has ended."""
        body = {"operation": operation, "source": {"kind": "rows", "rows": list(rows)}, **more}
        job = self.send("POST", f"/datasets/{dataset}/writes", body)
        self.service.work()
        ended: Row = self.client.get(f"/jobs/{job['id']}").json()
        return ended

    def ago(self, **span: float) -> str:
        """A time before the beginning of this hour, as JSON."""
        return (self.now - timedelta(**span)).isoformat().replace("+00:00", "Z")

    def datasets(self) -> None:
        """Datasets with corrections, deletes, services, named versions, records in quarantine, long values."""
        for definition in (_READINGS, _ORDERS, _ALARMS):
            self.send("POST", "/datasets", definition)
        for hour in range(6):
            readings = [
                {"area": area, "sensor": sensor, "taken": self.ago(hours=hour, minutes=minute)}
                | {"value": 36.5 + (hour * 7 + minute) % 11 / 2, "unit": "°C"}
                for area in _AREAS
                for sensor in _SENSORS
                for minute in (0, 20, 40)
            ]
            self.write("readings", "upsert", *readings)
        wrong = {"area": "press", "sensor": "roof-2", "taken": self.ago(hours=1), "value": 41.5, "unit": "°C"}
        self.write("readings", "upsert", wrong)
        self.write("readings", "delete", {key: wrong[key] for key in ("area", "sensor", "taken")})
        self.send("POST", "/datasets/readings/savepoints", {"name": "before-the-audit"})
        self.send("POST", "/datasets/readings/tags", {"name": "november"})
        self.send("POST", "/datasets/readings/compactions", {})
        self.service.work()
        bad = [{"area": "weld", "sensor": "line-4", "taken": "yesterday", "value": 1.5}] * 2
        good = {"area": "weld", "sensor": "line-4", "taken": self.ago(minutes=5), "value": 38.0, "unit": "°C"}
        self.write("readings", "upsert", good, *bad, {**good, "vlaue": 1}, on_error="quarantine")
        orders = [
            {"id": each, "customer": ("acme", "globex", "initech")[each % 3], "status": "placed"}
            | {"total": f"{each * 3.5:.2f}", "placed": self.ago(hours=each % 40)}
            for each in range(1, 61)
        ]
        self.write("orders", "upsert", *orders)
        self.write("orders", "upsert", {**orders[41], "status": "paid"}, {**orders[6], "status": "shipped"})
        self.write("orders", "delete", {"id": 13})
        self.write("alarms", "insert", {"at": self.ago(hours=2), "what": HOSTILE, "details": {"a": [1, 2]}})
        self.write("alarms", "insert", {"at": self.ago(hours=1), "what": LONG, "details": None})

    def consumers(self) -> None:
        """One consumer that is at the end of a feed, and one far behind."""
        end = self.send("GET", "/datasets/orders/changes?since=now")["next_since"]
        for name, offset in (("billing", end), ("warehouse", 4)):
            path = f"/datasets/orders/consumers/{name}"
            self.send("PUT", path, {"offset": offset}, **{"If-None-Match": "*"})

    def webhooks(self) -> str:
        """One that works, one that is paused; the id of that."""
        url = {"url": self.receiver.url}
        self.send("POST", "/webhooks", {"dataset": "readings", "description": "pager", "since": "now"} | url)
        body = {"dataset": "orders", "description": "order system", "since": 0, "batch_changes_max": 1} | url
        self.receiver.answer(*[500] * 9, body=b"the order system is being repaired")
        paused: str = self.send("POST", "/webhooks", body)["id"]
        work_until(self.service, lambda: self.send("GET", f"/webhooks/{paused}")["state"] == "paused")
        return paused

    def sources(self) -> str:
        """One that has read a file, one that fails; the id of the first."""
        folders = {}
        for name, line in (
            ("plant-files", {"at": self.ago(hours=3), "what": "belt"}),
            ("night-files", "wrong"),
        ):
            folders[name] = (
                self.service.settings.data_dir / "incoming" / f"{tenant_of(self.client, self.service)}-{name}"
            )
            folders[name].mkdir(parents=True)
            Path(folders[name] / "part-1.ndjson").write_text(json.dumps(line) + "\n")
        made = [
            self.send(
                "POST",
                "/sources",
                {
                    "name": name,
                    "dataset": "alarms",
                    "kind": "files",
                    "config": {"path": folder.as_uri(), "format": "ndjson"},
                    "mode": "once",
                },
            )
            for name, folder in folders.items()
        ]
        self.service.work()
        return str(made[0]["id"])

    def view(self) -> str:
        """A view that is at the end of its input; its name."""
        self.service.derivation.queries["customers"] = _by_customer
        self.send("POST", "/views", {"name": "customers", "sql": _VIEW, "record_key": ["customer"]})
        self.service.work()
        return "customers"

    def more(self) -> str:
        """An export, a share, keys, a failed write; the id of the export."""
        export = self.send("POST", "/datasets/orders/exports", {"query": "changes", "format": "ndjson"})
        self.send("POST", "/shares", {"name": "partners", "datasets": [{"name": "orders"}]})
        self.send("POST", "/shares/partners/recipients", {"name": "globex"})
        self.send("POST", "/keys", {"name": "dashboards", "scopes": ["read"]})
        self.service.work()
        failed = self.write("orders", "insert", {"id": 7, "customer": "acme", "status": "placed"})
        assert failed["state"] == "failed", failed
        return str(export["id"])


def populated(service: Service, name: str, receiver: Receiver) -> ConsoleTenant:
    """A new tenant with this name that has everything. Samples are taken, the last day has writes in each hour."""
    with service.client(service.new_key(name)) as client:
        made = client.post("/keys", json={"name": "plant-loader", "scopes": list(SCOPES)})
        assert made.status_code == 201, made.text
    key = made.json()["api_key"]
    with service.client(key) as client:
        filling = _Filling(service, client, receiver)
        filling.datasets()
        filling.consumers()
        webhook, source, view, export = filling.webhooks(), filling.sources(), filling.view(), filling.more()
        tenant_id = tenant_of(client, service)
        job = client.get("/jobs", params={"dataset": "orders", "state": "failed"}).json()["items"][0]["id"]
    sample_datasets(service.platform).samples.sample(tenant_id, _dataset_ids(service, tenant_id))
    _age(service, tenant_id)
    sample_usage(service.platform).run()
    _add_worker(service)
    variables = {
        "dataset": "readings",
        "job": job,
        "webhook": webhook,
        "source": source,
        "view": view,
        "export": export,
        "tenant": tenant_id,
        "share": "partners",
        **_DOCUMENTED,
    }
    return ConsoleTenant(api_key=key, tenant_id=tenant_id, variables=variables)


def empty(service: Service, name: str, *datasets: str) -> ConsoleTenant:
    """A new tenant that has these datasets without rows, and nothing else: what other pages are of does not exist."""
    key = service.new_key(name)
    with service.client(key) as client:
        tenant_id = tenant_of(client, service)
        for each in datasets:
            assert client.post("/datasets", json=_ORDERS | {"name": each}).status_code == 201
    absent = dict.fromkeys(("job", "webhook", "source", "view", "export", "share"), tenant_id)
    return ConsoleTenant(
        api_key=key,
        tenant_id=tenant_id,
        variables={**absent, **_DOCUMENTED, "dataset": datasets[0] if datasets else "none"}
        | {"tenant": tenant_id},
    )


def restricted(service: Service, tenant: ConsoleTenant) -> ConsoleTenant:
    """The same tenant, as one sees it whose key has a part of the rows and columns."""
    grants = [
        {"datasets": "readings", "where": "area = 'press'", "mask": ["unit"]},
        {"datasets": "orders", "where": "customer = 'acme'", "mask": ["total"]},
    ]
    with service.client(tenant.api_key) as client:
        answer = client.post("/keys", json={"name": "partner", "scopes": ["read"], "grants": grants})
        assert answer.status_code == 201, answer.text
    return ConsoleTenant(
        api_key=answer.json()["api_key"], tenant_id=tenant.tenant_id, variables=tenant.variables
    )


def _by_customer(orders: list[Row]) -> list[Row]:
    names = sorted({order["customer"] for order in orders})
    own = {name: [order for order in orders if order["customer"] == name] for name in names}
    return [
        {"customer": name, "orders": len(rows), "total": sum(row["total"] for row in rows)}
        for name, rows in own.items()
    ]


def _add_worker(service: Service) -> None:
    """Registers a worker that lives for an hour: the one of the tests is no process of its own."""
    report = ProcessReport(
        kind=ProcessKind.WORKER, host="plant-1", pid=41, version="0.1.0", resident_bytes=2**29
    )
    ProcessStore(service.database).report("worker", report)
    with service.database.relay() as connection:
        connection.execute(
            text("UPDATE workers SET polled_at = now() + interval '1 hour' WHERE id = 'worker'")
        )


def _dataset_ids(service: Service, tenant_id: str) -> list[str]:
    with service.database.tenant(tenant_id) as connection:
        return [str(each) for each in connection.execute(text("SELECT dataset_id FROM heads")).scalars()]


def _age(service: Service, tenant_id: str) -> None:
    """Puts writes into the hours of the last day, and makes `alarms` late: it was written to every five minutes."""
    with service.database.tenant(tenant_id) as connection:
        for statement in _PAST:
            connection.execute(text(statement))


_PAST: Final = (
    "INSERT INTO dataset_hours (dataset_id, hour, writes, rows_written) "
    "SELECT h.dataset_id, date_trunc('hour', now()) - make_interval(hours => n), 4 + (n * 7) % 5, "
    "900 + (n * 37) % 23 * 60 FROM heads h, generate_series(1, 23) n ON CONFLICT DO NOTHING",
    "UPDATE heads SET committed_at = committed_at - interval '2 hours' WHERE dataset_id = "
    "(SELECT id FROM datasets WHERE name = 'alarms')",
    "UPDATE dataset_samples SET write_gap_seconds = 300 WHERE dataset_id = "
    "(SELECT id FROM datasets WHERE name = 'alarms')",
)
