"""The generator of the Python client's values: the component schemas of the OpenAPI document as msgspec structs.

`python -m clients.generator` writes them to `headwater_client/models`, in one module for each tag of the document or
for a few.
"""

from clients.generator.modules import GeneratorError, sources

__all__ = ["GeneratorError", "sources"]
