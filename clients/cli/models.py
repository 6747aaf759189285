"""`headwater models`."""

import json
from pathlib import Path

from clients.cli.failure import CommandError
from clients.generator import GeneratorError, sources

_ROOT = Path(__file__).parents[2]


def models(
    *,
    document: Path = _ROOT / "openapi" / "openapi.json",
    folder: Path = _ROOT / "clients" / "python" / "headwater_client" / "models",
) -> None:
    """Write the values of the Python client, which are generated from the OpenAPI document.

    Modules of the folder that the document no longer has are deleted.


    Parameters
    ----------
    document
        The OpenAPI document.
    folder
        The folder of the modules.
    """
    try:
        texts = sources(json.loads(document.read_text(encoding="utf-8")))
    except (GeneratorError, OSError, ValueError) as error:
        raise CommandError(str(error)) from error
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.py"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
