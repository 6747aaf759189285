"""`headwater status`."""

from __future__ import annotations

from typing import Any, Final

import httpx2
import msgspec

from headwater_client.cli.printing.output import OUTPUT, Output
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import Identity
from headwater_client.problem import problem_of

# A service that does not answer is the answer: nothing is repeated.
_SECONDS: Final = 15.0


def status(*, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """Show which service is used, with which key, and whether it answers.

    With an operator's key it also shows the checks of the whole service. The exit code is 0 if the service answers and
    accepts the key.

    Example: `headwater status`
    """
    target = service.target()
    headers = {"Authorization": f"Bearer {target.api_key}"}
    with httpx2.Client(base_url=target.url, headers=headers, timeout=_SECONDS) as client:
        answer = client.get("/me")
        if not answer.is_success:
            raise problem_of(answer)
        identity = msgspec.json.decode(answer.content, type=Identity)
        found: dict[str, Any] = {
            "url": target.url,
            "url_from": target.url_from,
            "key_from": target.key_from,
            "tenant": identity.tenant.name,
            "key": identity.subject if identity.key is None else identity.key.name,
            "scopes": list(identity.scopes),
            "datasets": "*" if identity.grants is None else [each.datasets for each in identity.grants],
            "expires_at": identity.expires_at,
            "ready": client.get("/health/ready").is_success,
        }
        if "operate" in identity.scopes:
            found["service"] = _checks(client.get("/health/service"))
    output.item(found)


def _checks(answer: httpx2.Response) -> Any:
    """The state and the checks of the whole service, also where one fails; None if it has no such resource."""
    known = answer.headers.get("content-type", "").startswith("application/json")
    return answer.json() if known and answer.status_code in (200, 503) else None
