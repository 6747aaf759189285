"""Settings name the variable that is wrong, and never give a password away."""

import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url

from app.infra.settings import VARIABLES, Settings, SettingsError

LEAST = {"HEADWATER_DATABASE_URL": "postgresql://u:secret@h/d", "HEADWATER_REDIS_URL": "redis://:secret@h/0"}


def test_defaults_derive_from_other_settings(tmp_path):
    settings = Settings.from_environment({**LEAST, "HEADWATER_DATA_DIR": str(tmp_path)})
    assert settings.migration_database_url == settings.database_url
    assert settings.storage_uri == (tmp_path / "storage").as_uri()
    assert (settings.lease_seconds, settings.heartbeat_seconds, settings.poll_seconds) == (20, 5, 5)
    assert settings.dataset_writers_max == 1


@pytest.mark.parametrize(
    ("master", "derived"), [("local[3]", "local[3]"), ("yarn", "yarn"), ("spark://h:7077", "local[*]")]
)
def test_refreshes_run_where_writes_do_unless_these_take_all_cores(master, derived):
    settings = Settings.from_environment({**LEAST, "HEADWATER_SPARK_MASTER": master})
    assert settings.derived_spark_master == derived
    own = {**LEAST, "HEADWATER_SPARK_MASTER": master, "HEADWATER_DERIVED_SPARK_MASTER": "local[7]"}
    assert Settings.from_environment(own).derived_spark_master == "local[7]"


@pytest.mark.parametrize("spelling", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgres_url_spellings_are_normalised(spelling):
    settings = Settings.from_environment({**LEAST, "HEADWATER_DATABASE_URL": f"{spelling}://u@h/d"})
    assert settings.database_url == "postgresql://u@h/d"


def test_password_of_any_characters_travels_beside_the_url():
    password = "p@ss:w/rd?#%20 ü'\""
    given = {
        **LEAST,
        "HEADWATER_DATABASE_URL": "postgresql://app@h:5432/d",
        "HEADWATER_DATABASE_PASSWORD": password,
        "HEADWATER_ADMIN_DATABASE_URL": "postgresql://admin:own@h/d",
        "HEADWATER_ADMIN_DATABASE_PASSWORD": password,
    }
    settings = Settings.from_environment(given)
    assert make_url(settings.database_url).password == password
    assert conninfo_to_dict(settings.database_url)["password"] == password
    assert settings.migration_database_url == settings.database_url
    # A password in the URL is the one that counts.
    assert make_url(settings.admin_database_url).password == "own"
    assert password not in repr(settings)


def test_password_needs_a_user():
    with pytest.raises(SettingsError, match="add USER@"):
        Settings.from_environment(
            {**LEAST, "HEADWATER_DATABASE_URL": "postgresql://h/d", "HEADWATER_DATABASE_PASSWORD": "p"}
        )


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("HEADWATER_DATABASE_URL", "mysql://u:hunter2@h/d", "must look like postgresql://"),
        ("HEADWATER_REDIS_URL", "h:6379", "must look like redis://"),
        ("HEADWATER_ALERT_SECRET", "abc", "must be whsec_ and the base64 of 24–64 random bytes"),
        ("HEADWATER_ALERT_SECRET", "whsec_YWJj", "must be whsec_ and the base64 of 24–64 random bytes"),
        ("HEADWATER_STORAGE_URI", "ftp://h/x", "must look like file://"),
        ("HEADWATER_SPARK_MASTER", "mesos://h", "must be local"),
        ("HEADWATER_PUBLIC_URL", "https://a.example/path", "must be the root of a host"),
        ("HEADWATER_PUBLIC_URL", "data.example.com", "must be the root of a host"),
        ("HEADWATER_PORT", "0", "must be from 1 to 65535, not 0"),
        ("HEADWATER_PORT", "http", "must be a whole number, not 'http'"),
        ("HEADWATER_WORKER_THREADS", "0", "must be from 1"),
        ("HEADWATER_POLL_SECONDS", "-1", "above zero"),
        ("HEADWATER_POLL_SECONDS", "nan", "above zero"),
        ("HEADWATER_SPARK_LOCALITY_WAIT_SECONDS", "-1", "above zero"),
        ("HEADWATER_UPLOAD_BYTES_MAX", "12", "must be at least 1024"),
        ("HEADWATER_WEBHOOK_RETRY_SECONDS", "5,,9", "must be a number of seconds"),
        ("HEADWATER_WEBHOOK_ALLOW", "hooks.internal, 10.20.0.5/16", "10.20.0.5/16 has host bits set"),
        ("HEADWATER_WEBHOOK_HTTP", "yes", "must be true or false"),
        ("HEADWATER_HEARTBEAT_SECONDS", "40", "a lease must outlast"),
        ("HEADWATER_SPARK_EXECUTOR_CORES", "3", "not one executor would fit"),
        ("HEADWATER_TRUSTED_PROXIES", "10.0.0.0/8, proxy", "must be addresses and networks"),
        ("HEADWATER_CORS_ORIGINS", "https://app.example.com/", "must be origins"),
        ("HEADWATER_CORS_ORIGINS", "https://*.example.com", "must be origins"),
        ("HEADWATER_TLS_CERTIFICATE", "/etc/tls/api.pem", "belong together"),
    ],
)
def test_invalid_value_is_refused_by_name(variable, value, reason):
    with pytest.raises(SettingsError) as refusal:
        Settings.from_environment({**LEAST, variable: value})
    assert variable in str(refusal.value)
    assert reason in str(refusal.value)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("variable", LEAST)
def test_missing_server_is_named(variable):
    environment = {name: value for name, value in LEAST.items() if name != variable}
    with pytest.raises(SettingsError, match=f"{variable} is not set"):
        Settings.from_environment(environment)


def test_passwords_are_absent_from_the_representation():
    assert "secret" not in repr(Settings.from_environment(LEAST))


def test_variables_of_other_programs_are_ignored():
    # Kubernetes adds such variables for every service of its namespace.
    Settings.from_environment({**LEAST, "HEADWATER_SERVICE_HOST": "10.0.0.1"})
    assert "HEADWATER_SERVICE_HOST" not in VARIABLES


def test_public_url_is_the_root_of_a_host_or_open():
    # Files of deployments pass on a variable that is not set as an empty text.
    for text, url in (("", ""), ("https://data.example.com/", "https://data.example.com")):
        assert Settings.from_environment({**LEAST, "HEADWATER_PUBLIC_URL": text}).public_url == url
