"""Every form of every page with hostile values: a page says what is wrong, and no other tenant changes.

A case is a seed. CI runs one of them for each commit, `make test-shares` all.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpx2
import pytest

from app.features.console.pages.all import PAGES
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.console_tenant import ConsoleTenant, populated
from tests.support.http import TLS
from tests.support.pages import PageElement, checked_page, form_values, parsed
from tests.support.postgres import TestServer
from tests.support.receiver import receiving
from tests.support.server_fixtures import fresh_service
from tests.support.service import Service
from tests.support.shares import share

_SEEDS: Final = 40
_MUTATIONS: Final = 4
_MARKUP: Final = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>"
_HOSTILE: Final[tuple[str | bytes, ...]] = (
    "",
    " \t ",
    "x" * 300,
    "x" * 30_000,
    _MARKUP,
    "{{7*7}}{% raw %}",
    "a\0b",
    "\x1b[31m\r\nSet-Cookie: a=b\r\n\r\n\u202e\ufeff\x7f",
    b"\xff\xfe\xed\xa0\x80",
    "\U0001f600" * 70,
    "-1",
    "1e999",
    "NaN",
    "9" * 25,
    "0x10",
    "\u0661\u0662",
    "null",
    "[]",
    "{}",
    '{"a": ',
    '{"kind": 7, "config": [], "name": {}}',
    "[" * 2_000,
    '[{"datasets": 7, "where": {}}]',
    "../../../etc/passwd",
    "'; DROP TABLE datasets; --",
    "javascript:alert(1)",
    "//example.com/",
    "http://[::1",
    "0001-01-01T00:00",
    "9999-12-31T23:59:59-23:59",
    "SELECT",
    "*",
)
# Forms after which others would find nothing come last.
_LATE: Final = ("settings", "suspend", "resume", "schema/changes", "restore", "undo", "delete", "revoke")
# Pages with forms that another one leads to, by what their addresses need.
_QUERIES: Final = (
    ("/datasets/{dataset:str}/timeline", "?restore=2"),
    ("/datasets/{dataset:str}/schema", "?change=drop&column=unit"),
    ("/datasets/{dataset:str}/rows/difference", "?from=1&to=3"),
)
_LISTS: Final = (
    *("/datasets", "/webhooks", "/sources", "/views", "/exports", "/shares", "/keys", "/jobs"),
    *("/datasets/orders", "/datasets/orders/consumers", "/datasets/orders/rows?limit=100"),
    *("/datasets/readings", "/datasets/readings/tags", "/datasets/readings/savepoints"),
    *("/datasets/readings/quarantine", "/shares/partners/recipients"),
)


@dataclass(frozen=True, kw_only=True)
class FoundForm:
    """A form of a page. `fields`: its values as a browser would send them unchanged."""

    method: str
    path: str
    fields: Mapping[str, str]


@pytest.fixture(scope="module")
def own_service(postgres: TestServer, redis: EmbeddedValkey) -> Iterator[Service]:
    """A service of these tests alone, whose tenants have a worker that does not exist."""
    with fresh_service(postgres, redis) as running:
        yield running


@pytest.fixture(scope="module")
def other(own_service: Service) -> Iterator[ConsoleTenant]:
    """The tenant that no form may change."""
    with receiving() as receiver:
        yield populated(own_service, "other", receiver)


class Visitor:
    """A reader who sends forms. A form may end the session: then another one begins, if the key still works."""

    def __init__(self, service: Service, tenant: ConsoleTenant) -> None:
        self.client = httpx2.Client(
            base_url=service.url, trust_env=False, verify=TLS, timeout=30, headers={"Accept": "text/html"}
        )
        self.tenant = tenant
        self.token = ""

    def sign_in(self) -> bool:
        """Begins a session; false if the key is revoked."""
        self.client.cookies.clear()
        if self.client.post("/console/session", data={"api_key": self.tenant.api_key}).status_code != 303:
            return False
        self.token = (
            parsed(self.client.get("/console").text).all("input", name="token")[0].attributes["value"]
        )
        return True

    def forms(self) -> list[FoundForm]:
        """The forms of all pages, one for each method and path."""
        found: dict[tuple[str, str], FoundForm] = {}
        for address in self._addresses():
            response = self.client.get(address)
            if response.headers["content-type"].startswith("text/html") and "<form" in response.text:
                for each in parsed(response.text).all("form"):
                    form = _found(each)
                    found.setdefault((form.method, form.path), form)
        return sorted(found.values(), key=_rank)

    def send(self, form: FoundForm, pairs: Sequence[tuple[str, str | bytes]]) -> httpx2.Response:
        """The response to a form."""
        if form.method == "get":
            return self.client.get(f"{form.path}?{urlencode(pairs)}")
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.client.post(form.path, content=urlencode(pairs).encode(), headers=headers)

    def _addresses(self) -> Iterator[str]:
        for page in PAGES:
            yield self.tenant.address(page.path)
            if "{dataset:" in page.path:
                yield self.tenant.address(page.path).replace("/readings", "/orders")
        for path, query in _QUERIES:
            yield self.tenant.address(path) + query
        yield "/console/sign-in?next=/console"


def _found(element: PageElement) -> FoundForm:
    attributes = element.attributes
    return FoundForm(
        method=attributes.get("method", "get"), path=attributes["action"], fields=form_values(element)
    )


def _rank(form: FoundForm) -> tuple[int, str]:
    ranks = [number for number, word in enumerate(_LATE, 1) if form.path.endswith(f"/{word}")]
    return (ranks[0] if ranks else 0, form.path)


def _sent(
    form: FoundForm, token: str, random_: random.Random, foreign: Sequence[str]
) -> list[tuple[str, str | bytes]]:
    """The fields with some values replaced, left out or repeated, and at times one more."""
    values = (*_HOSTILE, *foreign)
    pairs: list[tuple[str, str | bytes]] = [
        (name, token if name == "token" else value) for name, value in form.fields.items()
    ]
    names = [name for name in form.fields if name != "token"] or ["unknown"]
    for name in random_.sample(names, random_.randint(1, min(len(names), 3))):
        value = random_.choice(values)
        match random_.randrange(6):
            case 0:
                pairs = [pair for pair in pairs if pair[0] != name]
            case 1:
                pairs += [(name, value), (name, random_.choice(values))]
            case 2:
                pairs.append((random_.choice(("unknown", _MARKUP, "quota.unknown", "value of x")), value))
            case _:
                pairs = [pair for pair in pairs if pair[0] != name] + [(name, value)]
    return pairs


def _judge(response: httpx2.Response, form: FoundForm, what: object) -> None:
    about = f"{form.method} {form.path} with {what!r:.600}: {response.status_code}"
    assert response.status_code < 500, f"{about} {response.text[:2_000]}"
    assert "set-cookie: a" not in str(response.headers).lower(), about
    assert "a" not in response.cookies, about
    if response.status_code == 303:
        target = urlsplit(response.headers["location"])
        assert not target.netloc, about
        assert target.path.startswith("/console"), about
        return
    assert _MARKUP not in response.text, about
    if not response.headers["content-type"].startswith("text/html"):
        assert form.method == "get" or response.status_code == 200, about
        return
    root = checked_page(response)
    if response.status_code >= 400:
        alerts = [each.text for each in root if each.attributes.get("role") == "alert"]
        faults = [*root.all("p", class_="fault"), *root.all("p", class_="field-fault")]
        assert any(len(each) > 20 for each in alerts) or faults, f"{about} {root.text[:1_000]}"
        assert "Traceback" not in root.text, about


def _state(service: Service, tenant: ConsoleTenant) -> dict[str, Any]:
    """All that forms could change of a tenant, but for what time alone changes."""
    with service.client(tenant.api_key) as client:
        state = {path: client.get(path).json() for path in _LISTS}
    for key in state["/keys"]["items"]:
        del key["last_used_at"]
    for consumer in state["/datasets/orders/consumers"]["items"]:
        del consumer["lag"]
    return state


def _foreign(form: FoundForm, own: ConsoleTenant, other: ConsoleTenant) -> FoundForm:
    """The same form, of what the other tenant has. Its operator may administer that tenant: this stays."""
    path = form.path
    for name, value in other.variables.items():
        if name not in ("tenant", "dataset", "view", "share"):
            path = path.replace(own.variables[name], value)
    return FoundForm(method=form.method, path=path, fields=form.fields)


@share(_SEEDS)
@pytest.mark.parametrize("seed", range(_SEEDS))
def test_no_form_breaks_a_page_or_changes_another_tenant(
    own_service: Service, other: ConsoleTenant, seed: int
) -> None:
    before = _state(own_service, other)
    with receiving() as receiver:
        visitor = Visitor(own_service, populated(own_service, f"plant-{seed}", receiver))
        assert visitor.sign_in()
        _send_forms(visitor, other, random.Random(seed))
        visitor.client.close()
    assert _state(own_service, other) == before


def _send_forms(visitor: Visitor, other: ConsoleTenant, random_: random.Random) -> None:
    foreign = [other.variables[each] for each in ("webhook", "source", "export", "job", "tenant")]
    forms = visitor.forms()
    assert len(forms) > 60, [form.path for form in forms]
    for form in (each for each in forms for _ in range(_MUTATIONS)):
        chosen = form if random_.random() < 0.8 else _foreign(form, visitor.tenant, other)
        pairs = _sent(chosen, visitor.token, random_, foreign)
        response = visitor.send(chosen, pairs)
        _judge(response, chosen, pairs)
        has_ended = "sign-in" in response.headers.get("location", "") or chosen.path == "/console/session"
        if has_ended and not visitor.sign_in():
            return


@pytest.fixture
def visitor(own_service: Service, other: ConsoleTenant) -> Iterator[Visitor]:
    """A reader of the tenant that nothing changes."""
    visitor = Visitor(own_service, other)
    assert visitor.sign_in()
    yield visitor
    visitor.client.close()


def test_a_form_without_its_token_changes_nothing(
    own_service: Service, other: ConsoleTenant, visitor: Visitor
) -> None:
    before = _state(own_service, other)
    forms = [each for each in visitor.forms() if each.method == "post" and "token" in each.fields]
    for form, token in ((form, token) for form in forms for token in ("", "0" * 64, _MARKUP, None)):
        fields = {name: value for name, value in form.fields.items() if name != "token"}
        pairs = [*fields.items(), ("unknown", ""), *([] if token is None else [("token", token)])]
        response = visitor.send(form, pairs)
        assert response.status_code == 403, form.path
        assert "load its page again" in checked_page(response).one("div", role="alert").text
    assert _state(own_service, other) == before


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [
        (b"name=%ff%fe&token=x", "application/x-www-form-urlencoded", 400),
        (b"&".join(b"a=1" for _ in range(1_100)), "application/x-www-form-urlencoded", 400),
        (b"a=" + b"x" * 1_100_000, "application/x-www-form-urlencoded", 413),
        (b"--b\r\nContent-Disposition: form-data\r\n\r\n1\r\n--b--", "multipart/form-data; boundary=b", 400),
        (b"--b", "multipart/form-data", 400),
        (b'{"token": "x"}', "application/json", 415),
    ],
    ids=["no UTF-8", "fields", "bytes", "a part without a name", "no boundary", "JSON"],
)
def test_a_body_that_is_no_form_is_refused(
    visitor: Visitor, content: bytes, media_type: str, status: int
) -> None:
    answer = visitor.client.post("/console/keys", content=content, headers={"Content-Type": media_type})
    assert answer.status_code == status, answer.text
    assert len(checked_page(answer).one("div", role="alert").text) > 20
