"""The settings of a process, read once from the environment at its start."""

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Self, cast, get_args
from urllib.parse import quote, urlsplit

from app.infra.outbound.signing_secret import SECRET_FORM, key_of

MEBIBYTE = 1024 * 1024
GIBIBYTE = 1024 * MEBIBYTE


class SettingsError(Exception):
    """The environment has invalid settings. The message has the variable, the fault and the remedy."""


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value


def _whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    def parse(value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise ValueError(f"must be a whole number, not {value!r}") from None
        if number < least or (most is not None and number > most):
            span = f"at least {least}" if most is None else f"from {least} to {most}"
            raise ValueError(f"must be {span}, not {number}")
        return number

    return parse


def _seconds(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"must be a number of seconds, not {value!r}") from None
    if not math.isfinite(number) or number <= 0:
        raise ValueError(f"must be a number of seconds above zero, not {value!r}")
    return number


def _seconds_or_none(value: str) -> float:
    return 0.0 if value == "0" else _seconds(value)


def _audit_seconds(value: str) -> float:
    if (number := _seconds(value)) < 30 * 86400:
        # The database refuses to delete entries that are younger.
        raise ValueError(f"must be at least 2592000 seconds (30 days), not {value!r}")
    return number


def _times(value: str) -> tuple[float, ...]:
    return tuple(_seconds(part.strip()) for part in value.split(","))


def _networks_and_hosts(value: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in value.split(",") if part.strip())
    for part in parts:
        if "/" in part:
            try:
                ip_network(part)
            except ValueError as fault:
                raise ValueError(f"must be networks such as 10.20.0.0/16, and hosts: {fault}") from None
    return parts


def _folders_and_prefixes(value: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in value.split(",") if part.strip())
    for part in parts:
        url = urlsplit(part)
        if url.scheme not in {"file", "s3"} or not (url.netloc or url.path.strip("/")):
            raise ValueError(
                f"must be folders such as file:///srv/incoming, or s3://bucket/prefix, not {part!r}"
            )
    return parts


def _networks(value: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in value.split(",") if part.strip())
    for part in parts:
        try:
            ip_network(part)
        except ValueError as fault:
            raise ValueError(f"must be addresses and networks such as 10.20.0.0/16: {fault}") from None
    return parts


def _origins(value: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in value.split(",") if part.strip())
    for part in parts:
        url = urlsplit(part)
        origin = f"{url.scheme}://{url.netloc}"
        if part != "*" and (url.scheme not in {"http", "https"} or part != origin or "*" in part):
            raise ValueError(f"must be origins such as https://app.example.com, or *, not {part!r}")
    return parts


def _flag(value: str) -> bool:
    if value not in {"true", "false"}:
        raise ValueError(f"must be true or false, not {value!r}")
    return value == "true"


def _signing_secret(value: str) -> str:
    # The message omits the value.
    try:
        key_of(value)
    except ValueError:
        raise ValueError(f"must be {SECRET_FORM}") from None
    return value


def _one_of(*names: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in names:
            raise ValueError(f"must be {' or '.join(names)}, not {value!r}")
        return value

    return parse


def _postgres_url(value: str) -> str:
    scheme, separator, rest = value.partition("://")
    if not separator or scheme not in {"postgresql", "postgres", "postgresql+psycopg"} or not rest:
        # The message omits the value, which may contain a password.
        raise ValueError("must look like postgresql://user:password@host:5432/database")
    # One form that libpq and SQLAlchemy (with psycopg as its default driver) both accept.
    return f"postgresql://{rest}"


def _with_password(url: str, password: str) -> str:
    """The URL with the password, unless it has one. Raises SettingsError if it has no user to whom it belongs."""
    if not url or not password:
        return url
    scheme, _, rest = url.partition("://")
    login, at, place = rest.partition("@")
    if not at or not login:
        raise SettingsError("a URL of Postgres without a user has no place for a password: add USER@ to it")
    return url if ":" in login else f"{scheme}://{login}:{quote(password, safe='')}@{place}"


def _url_of(*schemes: str, example: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if urlsplit(value).scheme not in schemes:
            raise ValueError(f"must look like {example}")
        return value

    return parse


def _root_url(value: str) -> str:
    """An empty text is that of a file which leaves it open."""
    if not value:
        return value
    url = urlsplit(value)
    is_root = not (url.path.strip("/") or url.query or url.fragment or "@" in url.netloc)
    if url.scheme not in {"http", "https"} or not url.hostname or not is_root:
        raise ValueError(f"must be the root of a host, such as https://data.example.com, not {value!r}")
    return f"{url.scheme}://{url.netloc}"


def _spark_master(value: str) -> str:
    if re.fullmatch(r"local(\[(\*|[1-9]\d{0,3})\])?|(spark|k8s)://.+|yarn", value) is None:
        raise ValueError(f"must be local[*], local[N], spark://host:7077, k8s://… or yarn, not {value!r}")
    return value


def is_cluster(spark_master: str) -> bool:
    """Whether the executors of this master are processes of their own, mostly on other machines."""
    return not spark_master.startswith("local")


def _path(value: str) -> Path:
    return Path(_text(value)).expanduser().absolute()


def variable_of(name: str) -> str:
    """The environment variable of a field."""
    return f"HEADWATER_{name.upper()}"


def _parser(annotation: Any) -> Callable[[str], Any]:
    """The function that reads the text of a variable, from the type of its field."""
    _, parse = get_args(annotation)
    return cast(Callable[[str], Any], parse)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The settings of this process. Sizes are in bytes, times are in seconds.

    The variable of a field is HEADWATER_ and its name in capitals. The second argument of its type parses and checks
    the text.

    Passwords in the URLs are excluded from ``repr``, so that log lines with the settings do not disclose them.
    """

    database_url: Annotated[str, _postgres_url] = field(repr=False)
    """Postgres with the application's role, which row level security restricts."""
    database_password: Annotated[str, _text] = field(repr=False, default="")
    """The password for that URL, if the URL has none: any characters, none of them encoded."""
    migration_database_url: Annotated[str, _postgres_url] = field(repr=False, default="")
    """Postgres with the schema's owner, for migrations; by default the application's URL."""
    migration_database_password: Annotated[str, _text] = field(repr=False, default="")
    """The password for that URL, if the URL has none."""
    admin_database_url: Annotated[str, _postgres_url] = field(repr=False, default="")
    """Postgres with the login that administers tenants and API keys, for the API only; without it, the API does not."""
    admin_database_password: Annotated[str, _text] = field(repr=False, default="")
    """The password for that URL, if the URL has none."""
    redis_url: Annotated[str, _url_of("redis", "rediss", example="redis://:password@host:6379/0")] = field(
        repr=False
    )
    """Redis for notifications; its loss costs latency, never data."""
    data_dir: Annotated[Path, _path] = field(default_factory=lambda: Path(".headwater").absolute())
    """The local folder of this process: staging, logs, Spark's scratch space."""
    storage_uri: Annotated[str, _url_of("file", "s3", example="file:///path or s3://bucket/prefix")] = ""
    """The root of all tables' files; by default the folder ``storage`` in the data directory."""
    spark_master: Annotated[str, _spark_master] = "local[*]"
    derived_spark_master: Annotated[str, _spark_master] = ""
    """Where the SQL of users runs; by default as writes do, but on the worker's machine instead of a standalone
    cluster."""
    spark_ui_url: Annotated[str, _url_of("http", "https", example="http://spark-master:8080")] = ""
    """The web interface of a standalone master, which reports its cores; by default port 8080 of the master."""
    spark_cores_max: Annotated[int, _whole_number(1, 10_000)] = 2
    """The cores of a cluster that one worker process takes at most."""
    spark_executor_cores: Annotated[int, _whole_number(1, 1_000)] = 1
    """The cores of one executor on a cluster: the number of its tasks at a time."""
    spark_executor_memory_bytes: Annotated[int, _whole_number(512 * MEBIBYTE)] = 1 * GIBIBYTE
    """The heap of the JVM of one executor on a cluster. Rows are in Python processes beside it."""
    spark_dynamic_allocation: Annotated[bool, _flag] = False
    """Whether executors without work are given back to the cluster, except one."""
    spark_locality_wait_seconds: Annotated[float, _seconds_or_none] = 0.1
    """How long a task on a cluster waits for the host that has the copies of its files; 0: it prefers none."""
    spark_driver_host: Annotated[str, _text] = ""
    """The name or address under which executors of a cluster reach this worker; by default the one Spark finds."""
    spark_bind_address: Annotated[str, _text] = ""
    """The address on which this worker listens for executors of a cluster; by default the one of the driver's host."""
    spark_driver_port: Annotated[int, _whole_number(0, 65535)] = 0
    """The port on which this worker listens for executors of a cluster; 0: any free port."""
    spark_block_manager_port: Annotated[int, _whole_number(0, 65535)] = 0
    """The port for blocks of data, on this worker and on each executor of a cluster; 0: any free port."""
    executor_dir: Annotated[Path | None, _path] = None
    """The folder for hot copies on the machines of executors, unless a machine has this variable itself; by default
    the data directory."""
    host: Annotated[str, _text] = "127.0.0.1"
    port: Annotated[int, _whole_number(1, 65535)] = 8080
    public_url: Annotated[str, _root_url] = ""
    """The address under which clients reach the API, for open tables, which name it. By default that of the request."""
    tls_certificate: Annotated[Path | None, _path] = None
    """The certificate of the API with its chain, as PEM. With it, the API serves HTTPS only."""
    tls_key: Annotated[Path | None, _path] = None
    """The private key of the certificate, as PEM."""
    trusted_proxies: Annotated[tuple[str, ...], _networks] = ("127.0.0.1", "::1")
    """Addresses and networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed."""
    cors_origins: Annotated[tuple[str, ...], _origins] = ()
    """Origins whose pages may call the API from a browser; `*` for all."""
    connections_max: Annotated[int, _whole_number(1, 1_000_000)] = 5_000
    """The connections that one API process serves at a time."""
    address_connections_max: Annotated[int, _whole_number(1, 1_000_000)] = 1_000
    """The connections from one address, unless it is a trusted proxy."""
    header_bytes_max: Annotated[int, _whole_number(1024, 16 * MEBIBYTE)] = 64 * 1024
    """The request line and headers of a request."""
    header_seconds: Annotated[float, _seconds] = 10.0
    """The time in which a client sends the request line and the headers."""
    request_stall_seconds: Annotated[float, _seconds] = 30.0
    """The time in which a client sends at least 4 KiB of a body."""
    response_stall_seconds: Annotated[float, _seconds] = 60.0
    """The time in which a client reads at least 4 KiB of a response."""

    drain_seconds: Annotated[float, _seconds_or_none] = 0.0
    """The time for which the API serves after SIGTERM while it reports that it is not ready."""
    worker_threads: Annotated[int, _whole_number(1, 256)] = 32
    """The number of groups of writes that one worker process runs at a time."""
    derived_threads: Annotated[int, _whole_number(1, 64)] = 2
    """The number of refreshes of views, and of rounds of sources with a transform, that one worker runs at a time, in a
    process of their own.
    """
    derived_slice_seconds: Annotated[float, _seconds] = 60.0
    """The time after which such a job makes room for others, and runs in a process of slow ones."""
    derived_heap_bytes: Annotated[int, _whole_number(512 * MEBIBYTE)] = 1 * GIBIBYTE
    """The heap of the JVM of that process."""
    dataset_writers_max: Annotated[int, _whole_number(1)] = 1
    """The number of write jobs of one dataset that run at a time. Waiting jobs are committed as a group."""
    task_threads: Annotated[int, _whole_number(1, 64)] = 2
    """The number of jobs other than writes, such as exports and compactions, that one worker runs at a time."""
    replans_max: Annotated[int, _whole_number(0)] = 20
    """The number of new plans that a write makes after conflicts before it fails."""
    attempts_max: Annotated[int, _whole_number(1)] = 5
    """The number of claims of a job before it fails permanently."""
    job_seconds_max: Annotated[float, _seconds] = 3600.0
    """The time after which an attempt at a refresh, restore, read, export, verification, comparison or analysis
    fails.
    """
    write_seconds_max: Annotated[float, _seconds] = 3600.0
    """The time after which an attempt at a group of writes is stopped. A write that runs alone then fails."""

    task_memory_bytes: Annotated[int, _whole_number(1024)] = 1 * GIBIBYTE
    """The memory that one task uses for rows. Rows that do not fit are merged in parts, through the scratch folder."""
    read_memory_bytes: Annotated[int, _whole_number(1024)] = 256 * MEBIBYTE
    """The memory that one page of rows uses to merge logs. Rows that do not fit go to the data directory."""
    file_cache_bytes: Annotated[int, _whole_number(0)] = 48 * MEBIBYTE
    """The memory of a process in which footers and decoded parts of files are cached."""
    page_cache_bytes: Annotated[int, _whole_number(0)] = 32 * MEBIBYTE
    """The memory of an API process in which encoded pages of changes are cached for a minute."""
    page_bytes_max: Annotated[int, _whole_number(1024)] = 32 * MEBIBYTE
    """The largest page of rows or changes in memory. A page has one row, or one pair of changes, whatever its size."""
    unread_bytes_max: Annotated[int, _whole_number(1)] = 128 * MEBIBYTE
    """The bytes of responses in an API process that a tenant may leave unread before it gets the next page."""
    read_inline_bytes_max: Annotated[int, _whole_number(0)] = 64 * MEBIBYTE
    """The largest result of a read job that is returned in one reply. A larger result is returned as files."""
    read_result_seconds: Annotated[float, _seconds] = 86400.0
    """The time after which the result of a read job expires."""
    hot_bytes_max: Annotated[int, _whole_number(0)] = 8 * GIBIBYTE
    """The disk space for hot copies of data files in which rows are looked up by key; 0 disables them."""

    storage_link_seconds: Annotated[int, _whole_number(0, 3600)] = 0
    """The time for which links to files in an S3 storage are valid; 0: there are none, and the API sends the files."""
    storage_link_url: Annotated[str, _url_of("http", "https", example="https://s3.example.com")] = ""
    """The URL of the S3 service under which clients reach it, if it is another one than the service uses."""

    table_key_seconds: Annotated[float, _seconds] = 3600.0
    """The time for which a key for the files of a table is valid."""
    unused_file_seconds: Annotated[float, _seconds_or_none] = 3600.0
    """The time for which data files stay that no retained version uses, for scans that were planned before."""

    rendered_bytes_max: Annotated[int, _whole_number(0)] = 32 * GIBIBYTE
    """The storage for files that are rendered for readers who see a part of a dataset. Those that were used longest
    ago are deleted, and rendered again when they are read."""
    rendered_tenant_bytes_max: Annotated[int, _whole_number(0)] = 8 * GIBIBYTE
    """The part of it that the files of one tenant take."""

    lease_seconds: Annotated[float, _seconds] = 20.0
    """The time after which the claim of a process on a job or a reconciler ends if it is not extended."""
    heartbeat_seconds: Annotated[float, _seconds] = 5.0
    """The interval at which a process extends its claims."""
    poll_seconds: Annotated[float, _seconds] = 5.0
    """The interval at which the database is polled for jobs whose notification was lost."""

    table_services: Annotated[bool, _flag] = True
    """Whether this worker runs table services automatically. Requested services always run."""
    maintenance_poll_seconds: Annotated[float, _seconds] = 1.0
    """The interval at which the database is polled for datasets with new versions or due table services."""

    orphan_grace_seconds: Annotated[float, _seconds] = 3600.0
    """The age at which an unreferenced file is deleted."""
    retention_seconds: Annotated[float, _seconds] = 300.0
    """The interval at which a worker searches for changes beyond the retention of their feed."""
    job_keep_seconds: Annotated[float, _seconds] = 2592000.0
    """The time for which a job that has ended is kept, and with it its idempotency key."""
    audit_keep_seconds: Annotated[float, _audit_seconds] = 34560000.0
    """The time for which the entries of the audit are kept: 30 days at least."""
    follower_lag_seconds: Annotated[float, _seconds] = 604800.0
    """The default lag of a webhook, an export or a view up to which its unread changes do not expire."""
    upload_keep_seconds: Annotated[float, _seconds] = 86400.0
    """The time after which an upload that no write names expires."""

    oidc_issuers: Annotated[str, _text] = ""
    """The OpenID Connect issuers whose tokens the API accepts: a JSON list, or the path of a file with one."""

    webhook_retry_seconds: Annotated[tuple[float, ...], _times] = (
        5.0,
        300.0,
        1800.0,
        7200.0,
        18000.0,
        36000.0,
        50400.0,
        72000.0,
        86400.0,
    )
    """The delays between the attempts to deliver a webhook's message. It is dropped after the last attempt."""
    webhook_keep_seconds: Annotated[float, _seconds] = 2592000.0
    """The time for which the deliveries of a webhook's messages are listed."""
    webhook_http: Annotated[bool, _flag] = False
    """Whether webhooks may be sent unencrypted."""
    webhook_allow: Annotated[tuple[str, ...], _networks_and_hosts] = ()
    """Networks and hosts outside the public internet that webhooks may be sent to, on any port."""

    source_roots: Annotated[tuple[str, ...], _folders_and_prefixes] = ()
    """The folders and prefixes below which sources may read files; `{tenant_id}` stands for the id of the tenant."""
    export_roots: Annotated[tuple[str, ...], _folders_and_prefixes] = ()
    """The folders and prefixes below which exports may write files; `{tenant_id}` stands for the id of the tenant."""
    source_http: Annotated[bool, _flag] = False
    """Whether sources may connect unencrypted."""
    source_allow: Annotated[tuple[str, ...], _networks_and_hosts] = ()
    """Networks and hosts outside the public internet that sources may connect to, on any port."""
    source_threads: Annotated[int, _whole_number(1, 64)] = 4
    """The threads of a worker that plan the rounds of sources, for each tenant at most; and the rounds that it fetches
    itself at a time, in half of `worker_threads` at most.
    """

    openlineage_url: Annotated[str, _url_of("http", "https", example="https://marquez.example")] = ""
    """Where events of OpenLineage are sent; empty for nowhere."""
    openlineage_api_key: Annotated[str, _text] = field(default="", repr=False)
    """What the receiver of these events takes as a bearer token; empty for none."""
    openlineage_namespace: Annotated[str, _text] = "headwater"
    """The namespace of jobs and datasets in these events."""

    log_format: Annotated[str, _one_of("text", "json")] = "text"
    """The form of the lines of the log."""

    metastore_uri: Annotated[str, _url_of("thrift", example="thrift://metastore:9083")] = ""
    """The Hive metastore to which datasets may be reported."""

    disk_free_bytes_min: Annotated[int, _whole_number(0)] = 512 * MEBIBYTE
    """The free space of the data directory, and of storage on a disk, below which the API reports not ready."""

    alert_url: Annotated[str, _url_of("http", "https", example="https://ops.example.com/alerts")] = ""
    """Where the API posts the events of alerts, such as `alert.fired`. The host may be a private one."""
    alert_secret: Annotated[str, _signing_secret] = field(default="", repr=False)
    """The secret that signs these events as webhooks are: `whsec_` and base64."""

    metrics_seconds: Annotated[float, _seconds] = 15.0
    """The interval at which one of the processes gathers the metrics of the service."""
    metrics_host: Annotated[str, _text] = "127.0.0.1"
    """The address on which processes other than the API serve their metrics, to everybody who reaches it."""
    metrics_port: Annotated[int, _whole_number(0, 65532)] = 0
    """The port on which a worker serves its metrics; its other processes use the next three. 0: they serve none."""

    json_body_bytes_max: Annotated[int, _whole_number(1024)] = 16 * MEBIBYTE
    inline_bytes_max: Annotated[int, _whole_number(1024)] = 8 * MEBIBYTE
    """The largest body of rows that the API decodes itself. A larger body is stored unchanged and decoded on Spark."""
    staged_inline_bytes_max: Annotated[int, _whole_number(0, MEBIBYTE)] = 64 * 1024
    """The size of the encoded rows of a write up to which they are kept with their job in Postgres, not in storage."""
    upload_bytes_max: Annotated[int, _whole_number(1024)] = 5 * GIBIBYTE

    decompressed_bytes_max: Annotated[int, _whole_number(1024)] = 20 * GIBIBYTE
    """The largest size of a gzipped body once it is decompressed, and of the rows of a split once they are decoded."""
    row_bytes_max: Annotated[int, _whole_number(1024, 256 * MEBIBYTE)] = 16 * MEBIBYTE
    """The largest row of a write: its text in JSON, NDJSON and CSV, its size in memory in Arrow and Parquet."""
    write_rows_max: Annotated[int, _whole_number(1)] = 100_000_000
    """The largest number of rows of a write."""

    def __post_init__(self) -> None:
        # Some defaults follow from other fields; a frozen dataclass allows this assignment only here.
        for login in ("database", "migration_database", "admin_database"):
            url, password = getattr(self, f"{login}_url"), getattr(self, f"{login}_password")
            object.__setattr__(self, f"{login}_url", _with_password(url, password))
        if not self.migration_database_url:
            object.__setattr__(self, "migration_database_url", self.database_url)
        if not self.derived_spark_master:
            standalone = self.spark_master.startswith("spark:")
            object.__setattr__(self, "derived_spark_master", "local[*]" if standalone else self.spark_master)
        if not self.storage_uri:
            object.__setattr__(self, "storage_uri", (self.data_dir / "storage").as_uri())
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise SettingsError(
                "HEADWATER_TLS_CERTIFICATE and HEADWATER_TLS_KEY belong together: set both, or neither"
            )
        if self.spark_executor_cores > self.spark_cores_max:
            raise SettingsError(
                f"HEADWATER_SPARK_EXECUTOR_CORES is {self.spark_executor_cores} and HEADWATER_SPARK_CORES_MAX "
                f"{self.spark_cores_max}: not one executor would fit"
            )
        if self.heartbeat_seconds * 2 > self.lease_seconds:
            raise SettingsError(
                f"HEADWATER_HEARTBEAT_SECONDS is {self.heartbeat_seconds:g} and HEADWATER_LEASE_SECONDS "
                f"{self.lease_seconds:g}: a lease must outlast a lost heartbeat, so it is at least twice that"
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Reads and checks every variable.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        values: dict[str, Any] = {}
        for setting in fields(cls):
            variable = variable_of(setting.name)
            if variable in environment:
                try:
                    values[setting.name] = _parser(setting.type)(environment[variable])
                except ValueError as fault:
                    raise SettingsError(f"{variable} {fault}") from None
            elif setting.default is MISSING and setting.default_factory is MISSING:
                raise SettingsError(
                    f"{variable} is not set. `headwater up` starts an embedded server and sets it by itself; "
                    "for a deployment set it to the server's URL"
                )
        return cls(**values)


VARIABLES: dict[str, str] = {variable_of(setting.name): setting.name for setting in fields(Settings)}
"""Every environment variable of the settings, with the name of its field."""
