"""A real Hive metastore on an embedded Derby database, from the jars that PySpark brings along."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from app.infra.runtime.java import java_home
from app.infra.runtime.loopback import LOOPBACK, free_port, is_free

_OPENED = ("java.lang", "java.net", "java.util", "java.util.concurrent")


@contextmanager
def running_metastore(folder: Path) -> Iterator[str]:
    """The URI of a metastore that keeps all in the folder, until the context is left."""
    port = free_port()
    jars = Path(pyspark.__file__).parent / "jars"
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder / 'derby'};create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
        # Its asynchronous log needs a library that PySpark leaves out.
        "hive.async.log.enabled": "false",
    }
    command = [
        str(java_home(folder) / "bin" / "java"),
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Dderby.system.home={folder}",
        f"-Djava.io.tmpdir={folder}",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        "-cp",
        f"{jars}/*",
        "org.apache.hadoop.hive.metastore.HiveMetaStore",
        "-p",
        str(port),
    ]
    for name, value in settings.items():
        command += ["--hiveconf", f"{name}={value}"]
    with (folder / "metastore.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 60
            while is_free(port):
                assert process.poll() is None, (folder / "metastore.log").read_text()[-2000:]
                assert time.monotonic() < deadline, "the metastore did not start"
                time.sleep(0.05)
            yield f"thrift://{LOOPBACK}:{port}"
        finally:
            process.kill()
            process.wait()
