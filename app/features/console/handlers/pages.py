"""Handlers of the pages and forms that `PAGES` and `ACTIONS` declare."""

from __future__ import annotations

from typing import Any, Final

from litestar import get, post
from litestar.handlers import HTTPRouteHandler

from app.features.console.handlers.credentials import (
    CONSOLE_SESSIONS,
    ConsoleSession,
    is_secure,
    refuse_other_sites,
    refuse_unknown_form,
)
from app.features.console.handlers.forms import read_form
from app.features.console.handlers.responses import html, notice_cookie, notice_of, see_other, sign_in_path
from app.features.console.inner_requests import InnerRequests
from app.features.console.page import ConsoleAction, ConsolePage, Context, Done
from app.features.console.rendering import render, with_links
from app.features.console.visit import ApiProblem, PageApi, Visit
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.parameters.query_parameters import ANY_PARAMETERS
from app.http.protocols import SCHEME
from app.http.request import ApiRequest
from app.http.response import ApiResponse

_OPTIONS: Final = needs(None) | {SCHEME: CONSOLE_SESSIONS, ANY_PARAMETERS: True}
_UNAUTHORIZED: Final = 401


def page_handler(page: ConsolePage) -> HTTPRouteHandler:
    """The handler of a page."""

    @get(f"/console{page.path}", opt=_OPTIONS | needs(None, in_outages=page.in_outages))
    async def get_page(
        request: ApiRequest, public_url: Provided[str], threads: Provided[Threads]
    ) -> ApiResponse[str]:
        visit = _visit(request, public_url, threads)
        try:
            response = html(await _rendered(page.template, visit, await page.read(visit)))
        except ApiProblem as problem:
            return await _problem_page(visit, problem)
        if visit.notice:
            response.cookies = [notice_cookie("", secure=is_secure(request, public_url))]
        return response

    return get_page


def action_handler(action: ConsoleAction) -> HTTPRouteHandler:
    """The handler of the form of an action."""

    @post(f"/console{action.path}", opt=_OPTIONS, status_code=200)
    async def post_form(
        request: ApiRequest, public_url: Provided[str], threads: Provided[Threads]
    ) -> ApiResponse[str]:
        refuse_other_sites(request, public_url)
        form = await read_form(request, threads)
        refuse_unknown_form(_session(request), form.text("token"))
        visit = _visit(request, public_url, threads, form.text("range"))
        try:
            outcome = await action.run(visit, form)
        except ApiProblem as problem:
            if action.page is None or problem.status == _UNAUTHORIZED:
                return await _problem_page(visit, problem)
            try:
                values = await action.page.read(visit)
            except ApiProblem:
                # The page of the form cannot be shown either.
                return await _problem_page(visit, problem)
            context = {**values, "form": form, "problem": problem}
            return html(await _rendered(action.page.template, visit, context), status=problem.status)
        if isinstance(outcome, Done):
            secure = is_secure(request, public_url)
            cookie = notice_cookie(outcome.notice, outcome.kind, secure=secure)
            return see_other(visit.keep(outcome.to), cookies=(cookie,))
        return html(await _rendered(outcome.template, visit, outcome.context))

    return post_form


def _session(request: ApiRequest) -> ConsoleSession:
    session: Any = request.auth
    assert isinstance(session, ConsoleSession)
    return session


def _visit(request: ApiRequest, public_url: str, threads: Threads, form_range: str = "") -> Visit:
    """`form_range`: the range of time of the page of a form, which the path of the form does not name."""
    session = _session(request)
    query = dict(request.query_params)
    time_range = query.pop("range", "") or form_range
    notice, kind = notice_of(request.cookies)
    sender = InnerRequests(request.scope, request.receive, session.credential)
    return Visit(
        api=PageApi(sender, threads),
        principal=request.user,
        url=public_url,
        path=request.scope["path"],
        variables=dict(request.path_params),
        query=query,
        form_token=session.form_token,
        range=time_range,
        notice=notice,
        notice_kind=kind,
    )


async def _rendered(template: str, visit: Visit, context: Context) -> str:
    shared = {"visit": visit, "calls": visit.api.calls, "now": visit.now, "form": None, "problem": None}
    return await visit.api.threads.run(_page_text, template, visit, {**shared, **context})


def _page_text(template: str, visit: Visit, context: Context) -> str:
    text = render(template, context)
    return with_links(text, visit.keep) if visit.range else text


async def _problem_page(visit: Visit, problem: ApiProblem) -> ApiResponse[str]:
    if problem.status == _UNAUTHORIZED:
        return see_other(sign_in_path(""))
    text = await _rendered("problem.html", visit, {"members": problem.members})
    return html(text, status=problem.status)
