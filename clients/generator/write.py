"""Writes the generated modules."""

import json
from pathlib import Path

from clients.generator.modules import sources

_ROOT = Path(__file__).parents[2]


def write_models(
    *,
    document: Path = _ROOT / "openapi" / "openapi.json",
    folder: Path = _ROOT / "clients" / "python" / "headwater_client" / "models",
) -> None:
    """Write the values of the Python client, which are generated from the OpenAPI document, to a folder.

    Modules of the folder that the document no longer has are deleted.

    Raises:
        GeneratorError: the document has a part that the generator does not know.
        ValueError: it is not JSON.
    """
    texts = sources(json.loads(document.read_text(encoding="utf-8")))
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.py"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
