"""Tokens for clients that have the id of an API key and the key: OAuth, as the Iceberg protocol uses it.

The token is the API key itself, so it ends when the key does, and is revoked with it. Nothing is stored.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote_plus

from litestar import post

from app.access.errors import Unauthorized
from app.access.tenants.values import API_KEY, Principal
from app.features.iceberg.errors import UnsupportedGrant
from app.features.iceberg.handlers.error_form import TOKENS_PATH
from app.features.iceberg.schemas import AccessToken
from app.http.auth import PUBLIC
from app.http.body_stream import read_body, require_media_type
from app.http.credential_cache import Credentials
from app.http.dependencies import Provided
from app.http.parameters.query_parameters import ANY_PARAMETERS
from app.http.protocols import client_address
from app.http.request import ApiRequest
from app.http.response import ApiResponse
from app.kernel.format.errors import FieldError, InvalidRequest

TOKEN_SECONDS: Final = 3_600
"""The lifetime that a token has for clients. They exchange it then, and find that its key is revoked."""
_FORM: Final = "application/x-www-form-urlencoded"
_BODY_BYTES_MAX: Final = 64 * 1024
_CREDENTIALS: Final = "client_credentials"
_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105  (a type of tokens)


@post(TOKENS_PATH, operation_id="iceberg_token", status_code=200, opt={PUBLIC: True, ANY_PARAMETERS: True})
async def give_token(request: ApiRequest, credentials: Provided[Credentials]) -> ApiResponse[AccessToken]:
    """Answers the token of a key, or a token that is still valid once more.

    Raises Unauthorized, UnsupportedGrant, InvalidRequest.
    """
    require_media_type(request, [_FORM])
    form = _form(await read_body(request, _BODY_BYTES_MAX))
    match form.get("grant_type"):
        case "client_credentials":
            client_id, token = _client(request, form)
        case "urn:ietf:params:oauth:grant-type:token-exchange":
            client_id, token = "", _required(form, "subject_token")
        case other:
            raise UnsupportedGrant(
                f"grant_type {other!r} is not offered; send {_CREDENTIALS} or {_EXCHANGE}",
                grant_types=[_CREDENTIALS, _EXCHANGE],
            )
    principal = await credentials.principal(token, client_address(request.scope))
    if principal is None or (client_id and not _is_client(principal, client_id)):
        raise Unauthorized("client_secret is no valid API key, or client_id is not its id")
    seconds = TOKEN_SECONDS if principal.valid_seconds is None else principal.valid_seconds
    return ApiResponse(
        AccessToken(
            access_token=token,
            token_type="bearer",  # noqa: S106  (a type of tokens)
            expires_in=max(1, int(min(seconds, TOKEN_SECONDS))),
            issued_token_type=_ACCESS_TOKEN,
        ),
        headers={"Cache-Control": "no-store"},
    )


def _is_client(principal: Principal, client_id: str) -> bool:
    return principal.token is None and principal.actor == client_id.lower()


def _form(body: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, strict_parsing=True))
    except ValueError:
        raise InvalidRequest("the body is no form") from None


def _client(request: ApiRequest, form: Mapping[str, str]) -> tuple[str, str]:
    """The id and the secret of the client, of the header Authorization or the form. The id may be empty."""
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            client_id, _, secret = b64decode(text.strip(), validate=True).decode().partition(":")
        except ValueError:
            raise InvalidRequest(
                "the header Authorization is not valid: expected Basic base64(id:key)"
            ) from None
        return unquote_plus(client_id), _api_key(unquote_plus(secret))
    return form.get("client_id", ""), _api_key(_required(form, "client_secret"))


def _api_key(text: str) -> str:
    if not API_KEY.fullmatch(text):
        raise Unauthorized("client_secret is no API key: it begins with hw_")
    return text


def _required(form: Mapping[str, str], name: str) -> str:
    if not form.get(name):
        detail = "this parameter is required"
        raise InvalidRequest(f"{name}: {detail}", [FieldError(pointer=f"/{name}", detail=detail)])
    return form[name]
