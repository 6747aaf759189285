"""How engines read a table: texts to copy, with the address of the service and the name of the table.

A name is quoted by the rules of each language, since names of datasets have blanks, dots and letters of any case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from app.core.catalog.values import ReadingExample
from app.features.iceberg.values import NAMESPACE, PATH

API_KEY: Final = "YOUR_API_KEY"
"""What stands for the key of the reader: no response has a key."""
SHARE: Final = "YOUR_SHARE"
"""What stands for the name of a share."""
PROFILE: Final = "YOUR_PROFILE.share"
"""What stands for the file with the profile of a recipient."""
_ICEBERG: Final = "1.12.0"
_CATALOGUE: Final = PATH.rpartition("/")[0]


def reading_examples(url: str, table: str) -> Sequence[ReadingExample]:
    """The examples of all engines.

    `url`: the address under which clients reach the service, without a slash at its end. `table`: the name of the
    dataset.
    """
    return [
        ReadingExample(engine=engine, language=language, code=code(f"{url}{_CATALOGUE}", table))
        for engine, language, code in _EXAMPLES
    ]


def _duckdb(uri: str, table: str) -> str:
    return f"""INSTALL iceberg; LOAD iceberg; CREATE SECRET headwater (TYPE iceberg, TOKEN '{API_KEY}');
ATTACH 'v3' AS headwater (TYPE iceberg, ENDPOINT '{uri}', SECRET headwater);
SELECT * FROM headwater.{NAMESPACE}.{_quoted(table, '"')} LIMIT 10;"""


def _pyiceberg(uri: str, table: str) -> str:
    return f"""{_loaded_table(uri, table)}
print(table.scan(limit=10).to_arrow())"""


def _polars(uri: str, table: str) -> str:
    return f"""import polars as pl
{_loaded_table(uri, table)}
keys = {{name: value for name, value in table.io.properties.items() if name.startswith("s3.")}}
print(pl.scan_iceberg(table, storage_options=keys).head(10).collect())"""


def _spark(uri: str, table: str) -> str:
    packages = ",".join(
        f"org.apache.iceberg:iceberg-{name}:{_ICEBERG}" for name in ("spark-runtime-4.1_2.13", "aws-bundle")
    )
    catalogue = "spark.sql.catalog.headwater"
    settings = {
        catalogue: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalogue}.type": "rest",
        f"{catalogue}.uri": uri,
        f"{catalogue}.warehouse": "v3",
        f"{catalogue}.token": API_KEY,
        f"{catalogue}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        f"{catalogue}.header.X-Iceberg-Access-Delegation": "vended-credentials",
    }
    lines = [
        f"spark-sql --packages {packages}",
        *(f"--conf {name}={text}" for name, text in settings.items()),
    ]
    query = f"SELECT * FROM headwater.{NAMESPACE}.{_quoted(table, '`')} LIMIT 10"
    return " \\\n  ".join([*lines, f"-e {_shell(query)}"])


def _trino(uri: str, table: str) -> str:
    return f"""# etc/catalog/headwater.properties
connector.name=iceberg
iceberg.catalog.type=rest
iceberg.rest-catalog.uri={uri}
iceberg.rest-catalog.warehouse=v2
iceberg.rest-catalog.security=OAUTH2
iceberg.rest-catalog.oauth2.token={API_KEY}
iceberg.rest-catalog.vended-credentials-enabled=true
iceberg.rest-catalog.case-insensitive-name-matching=true
fs.native-s3.enabled=true
# then: SELECT * FROM headwater.{NAMESPACE}.{_quoted(table, '"')} LIMIT 10"""


def _clickhouse(uri: str, table: str) -> str:
    return f"""SET allow_database_iceberg = 1;
CREATE DATABASE headwater ENGINE = DataLakeCatalog('{uri}/v1') SETTINGS catalog_type = 'rest', warehouse = 'v2',
  vended_credentials = true, auth_header = 'Authorization: Bearer {API_KEY}';
SELECT * FROM headwater.{_quoted(f"{NAMESPACE}.{table}", "`")} LIMIT 10;"""


def _daft(uri: str, table: str) -> str:
    return f"""import daft
from daft.io import IOConfig, S3Config
{_loaded_table(uri, table, warehouse="v2")}
keys = {{name.partition(".")[2]: value for name, value in table.io.properties.items() if name.startswith("s3.")}}
objects = S3Config(
    endpoint_url=keys["endpoint"],
    region_name=keys["region"],
    key_id=keys["access-key-id"],
    access_key=keys["secret-access-key"],
    session_token=keys.get("session-token"),
    use_ssl=keys["endpoint"].startswith("https"),
)
daft.read_iceberg(table, io_config=IOConfig(s3=objects)).show(10)"""


def _pandas(_: str, table: str) -> str:
    return f"""import delta_sharing
# {PROFILE}: `profile` of POST /shares/{SHARE}/recipients, in a file. The share has the dataset under this name.
print(delta_sharing.load_as_pandas({f"{PROFILE}#{SHARE}.default.{table}"!r}, limit=10))"""


def _loaded_table(uri: str, table: str, warehouse: str = "v3") -> str:
    return f"""from pyiceberg.catalog import load_catalog
catalog = load_catalog("headwater", type="rest", uri={uri!r}, warehouse={warehouse!r}, token={API_KEY!r})
table = catalog.load_table(({NAMESPACE!r}, {table!r}))"""


def _quoted(name: str, mark: str) -> str:
    return mark + name.replace(mark, mark * 2) + mark


def _shell(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


_EXAMPLES: Final[Sequence[tuple[str, str, Callable[[str, str], str]]]] = (
    ("DuckDB", "sql", _duckdb),
    ("PyIceberg", "python", _pyiceberg),
    ("Polars", "python", _polars),
    ("Spark", "shell", _spark),
    ("Trino", "sql", _trino),
    ("ClickHouse", "sql", _clickhouse),
    ("Daft", "python", _daft),
    ("pandas", "python", _pandas),
)
