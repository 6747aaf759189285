"""Provides handlers with Idempotency-Key for requests that create something and are not jobs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeVar, cast

import msgspec

from app.core.idempotency.errors import IdempotencyMismatch
from app.core.idempotency.sealing import seal, unseal
from app.core.idempotency.service import RunOnce
from app.core.idempotency.values import KeyedRequest, RefusedRequest, StoredReply
from app.http.auth import api_key_of
from app.http.body_stream import JSON
from app.http.dependencies import Provided, Provider
from app.http.limits.threads import Threads
from app.http.problems import is_final, on_headwater_error
from app.http.request import ApiRequest
from app.http.response import ApiResponse
from app.kernel.format.errors import HeadwaterError

# Marks a stored reply whose body is encrypted.
_SEALED: Final = "Headwater-Sealed"

_Reply = TypeVar("_Reply", bound=ApiResponse[Any])


@dataclass(frozen=True, kw_only=True, slots=True)
class Idempotency:
    """Runs the creation of one request: once, if the request has an Idempotency-Key."""

    header_descriptions: ClassVar[Mapping[str, str]] = {
        "Idempotency-Replayed": "`true` if this is the stored reply to an earlier request with the same key."
    }
    """The headers that it sets on the response."""

    request: ApiRequest
    key: str | None
    body: bytes
    threads: Threads
    run_once: RunOnce

    async def run(
        self,
        create: Callable[[], _Reply],
        *,
        dataset_id: str | None = None,
        content: str = "",
        threads: Threads | None = None,
        secret: bool = False,
    ) -> _Reply:
        """The reply of `create`, or the reply that an earlier request with the key got.

        `create` runs in a thread, in one transaction with the key: what it changes in the database is kept with the
        reply, or not at all. It returns a response with its status, and may raise. Errors that are final are replies,
        too. Others, such as a missing resource, leave the key free. `dataset_id`: of the dataset in the path, which has
        another name after a rename. `content` is the checksum of a body that is not JSON; `threads` are used instead of
        the usual ones. `secret`: the response contains a secret, so it is stored encrypted, and replayed to the same
        API key only. Raises IdempotencyMismatch, IdempotencyInFlight, and what `create` raises.
        """
        threads = threads or self.threads
        if self.key is None:
            return await threads.run(create)
        principal, scope = self.request.user, self.request.url.path
        if dataset_id is not None:
            # By its name, another dataset may be meant at the next request.
            scope = f"/datasets/{dataset_id}/{scope.split('/', 3)[3]}"
        if principal.grants is not None:
            # It gets no reply that another key got, and gives none: they may see other rows and other datasets.
            scope = f"{principal.actor} {scope}"
        keyed_request = KeyedRequest(scope=scope, key=self.key, request_hash=self._request_hash(content))
        return await threads.run(self._run, keyed_request, create, secret)

    def _run(self, keyed_request: KeyedRequest, create: Callable[[], _Reply], secret: bool) -> _Reply:
        results: list[_Reply | HeadwaterError] = []

        def act() -> StoredReply:
            try:
                reply = create()
            except HeadwaterError as error:
                if not is_final(error):
                    raise
                results.append(error)
                raise RefusedRequest(_problem(self.request, error)) from error
            results.append(reply)
            return self._sealed(keyed_request, _stored(reply)) if secret else _stored(reply)

        outcome = self.run_once.run(self.request.user.tenant_id, keyed_request, act)
        if outcome.is_replay:
            return cast("_Reply", _replay(self._unsealed(keyed_request, outcome.reply)))
        result = results[-1]
        if isinstance(result, HeadwaterError):
            raise result
        return result

    def _sealed(self, keyed_request: KeyedRequest, reply: StoredReply) -> StoredReply:
        body = seal(reply.body, api_key_of(self.request), _context(keyed_request))
        return msgspec.structs.replace(reply, headers={**reply.headers, _SEALED: "true"}, body=body)

    def _unsealed(self, keyed_request: KeyedRequest, reply: StoredReply) -> StoredReply:
        if _SEALED not in reply.headers:
            return reply
        body = unseal(reply.body, api_key_of(self.request), _context(keyed_request))
        if body is None:
            raise IdempotencyMismatch(
                "the first response contains a secret, and only the API key of that request may read it again"
            )
        headers = {name: value for name, value in reply.headers.items() if name != _SEALED}
        return msgspec.structs.replace(reply, headers=headers, body=body)

    def _request_hash(self, content: str) -> str:
        # Sorted: the same members in another order, or with other spaces, are the same request.
        value = msgspec.json.decode(self.body) if self.body else None
        parts = [self.request.method, self.request.url.query, content, value]
        return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def _context(keyed_request: KeyedRequest) -> bytes:
    return msgspec.json.encode((keyed_request.scope, keyed_request.key))


def _stored(reply: ApiResponse[Any]) -> StoredReply:
    assert reply.status_code is not None, "a reply that is stored has a status"
    return StoredReply(
        status=reply.status_code,
        headers={**reply.headers, "Content-Type": JSON},
        body=reply.render(reply.content, JSON),
    )


def _problem(request: ApiRequest, error: HeadwaterError) -> StoredReply:
    problem = on_headwater_error(request, error)
    assert problem.status_code is not None
    return StoredReply(
        status=problem.status_code,
        headers={**problem.headers, "Content-Type": str(problem.media_type)},
        body=problem.content,
    )


def _replay(reply: StoredReply) -> ApiResponse[bytes]:
    headers = {name: value for name, value in reply.headers.items() if name != "Content-Type"}
    return ApiResponse(
        reply.body,
        status_code=reply.status,
        media_type=reply.headers["Content-Type"],
        headers={**headers, "Idempotency-Replayed": "true"},
    )


async def idempotency(
    request: ApiRequest,
    idempotency_key: Provided[str | None],
    threads: Provided[Threads],
    run_once: Provided[RunOnce],
) -> Idempotency:
    """The object that creates the resource of this request once for each Idempotency-Key."""
    return Idempotency(
        request=request,
        key=idempotency_key,
        body=await request.body() if request.route_handler.parsed_data_field is not None else b"",
        threads=threads,
        run_once=run_once,
    )


PROVIDERS: Final[Mapping[str, Provider]] = {"idempotency": idempotency}
