"""`headwater export`."""

from __future__ import annotations

from pathlib import Path

from clients.export.folder import locked
from clients.export.tenant import TenantExport
from clients.export.values import ExportError
from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.cli.service import SERVICE, ServiceChoice


def export(folder: Path, *, datasets: str = "*", service: ServiceChoice = SERVICE) -> None:
    """Copy all of a tenant's data to a folder: definitions, rows and changes of its datasets and views.

    The key needs the scope read and no grants. Repeat the command to continue after an interruption, or to update the
    folder.

    Parameters
    ----------
    folder
        The folder, which is made if it does not exist.
    datasets
        Only datasets and views whose names match this pattern, such as orders_*.
    """
    try:
        with service.client() as client, locked(folder):
            export_ = TenantExport(
                client=client, folder=folder, progress=lambda line: print(line, flush=True)
            )
            manifest = export_.run(datasets)
    except ExportError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{folder} cannot be written: {error}", ExitCode.USAGE) from error
    files = [file for dataset in manifest.datasets for file in dataset.files]
    print(
        f"{folder} has {len(manifest.datasets)} datasets and views of {manifest.tenant_name}: "
        f"{sum(dataset.rows for dataset in manifest.datasets):,} rows, "
        f"{sum(each.changes.next_since - each.changes.since for each in manifest.datasets if each.changes):,} "
        f"changes, {sum(file.size_bytes for file in files):,} bytes in {len(files)} files"
    )
    if manifest.failed:
        names = ", ".join(each.name for each in manifest.failed)
        raise CommandError(f"not exported: {names}. Run the command again to continue")
