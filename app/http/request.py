"""The request as handlers receive it: a JSON body is read within the handler's limit and decoded once."""

from __future__ import annotations

from typing import Any, Final

from litestar import Request
from litestar.datastructures import State
from litestar.types import Empty

from app.access.tenants.values import Principal
from app.http.body_stream import JSON, announces_body, read_body, refuse_encoding, require_media_type
from app.http.json_body import decode_json
from app.http.waiting.request_credential import RequestCredential

ACT_BODY: Final = "headwater_body"
"""The state of a request has its JSON body under this name, once the body was read."""
DATASET_NAME: Final = "headwater_dataset"
"""… and the name of the dataset of its path."""
JOB_ID: Final = "headwater_job"
"""… and the id of the job that it was accepted as."""
JSON_BODY_BYTES_MAX: Final = 64 * 1024
"""The largest JSON body where a handler sets no `request_max_body_size` of its own."""


class ApiRequest(Request[Principal, RequestCredential, State]):
    """A request of an authenticated principal.

    A handler declares its JSON body as `data: JSONBody[CreateWebhook]`. A default makes the body optional.
    """

    async def body(self) -> bytes:
        """The JSON body, empty where it is optional and absent.

        Raises UnsupportedMediaType, BodyTooLarge, MalformedBody.
        """
        if self._body is Empty:
            self._body = await self._json_text()
        return self._body

    async def json(self) -> Any:
        """The body as the type of the handler's `data` parameter. Raises InvalidRequest, MalformedBody."""
        data = self.route_handler.parsed_data_field
        assert data is not None, "only a handler with a `data` parameter reads a JSON body"
        body = self.scope["state"][ACT_BODY] = await self.body()
        return decode_json(body, data.annotation)

    async def _json_text(self) -> bytes:
        data = self.route_handler.parsed_data_field
        if data is not None and data.has_default and not announces_body(self):
            return b""
        require_media_type(self, [JSON])
        refuse_encoding(self)
        return await read_body(
            self, self.route_handler.resolve_request_max_body_size() or JSON_BODY_BYTES_MAX
        )
