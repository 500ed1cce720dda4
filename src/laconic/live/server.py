"""The live page, served: to whoever has the token, news by server-sent events, one look at the folders for all."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from laconic.live.address import listen, make_url, warn
from laconic.live.clients import describe_clients
from laconic.live.watch import Watch, check_folder
from laconic.pages import hash_script, read_style, show_head
from laconic.report.page import read_script
from laconic.signals import find_number

RUNS = Path("runs")  # where laconic run writes unless told otherwise
LOOK_SECONDS = 0.5  # between looks at the folders, while somebody watches
QUIET_SECONDS = 15.0  # after which a viewer is told that there is nothing new, so that its connection stays
NO_ICON = '<link rel="icon" href="data:,">\n'  # else browsers ask for one
MOST_WAITING = 100  # messages that a viewer may lag behind; then it has to connect anew
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
NOTHING_ELSE = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

Answer = Callable[[Request], Awaitable[Response]]


class Hub:
    """Looks at the folders once for all viewers, and hands them what is new."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._viewers: set[asyncio.Queue[str | None]] = set()
        self._looking = asyncio.Lock()

    async def keep_looking(self, is_over: Callable[[], bool]) -> None:
        """While anybody watches; then all viewers are let go."""
        try:
            while not is_over():
                if self._viewers:
                    async with self._looking:
                        await self._look()
                await asyncio.sleep(LOOK_SECONDS)
        finally:  # a page that nobody tells anything is not to look alive
            for viewer in self._viewers:
                self._tell(viewer, None)

    async def follow(self) -> AsyncIterator[str]:
        """Everything, then what is new, as server-sent events."""
        viewer: asyncio.Queue[str | None] = asyncio.Queue(MOST_WAITING)
        async with self._looking:
            await self._look()
            text: str | None = to_event("all", self.watch.show())
            self._viewers.add(viewer)
        try:
            while text is not None:
                yield text
                try:
                    text = await asyncio.wait_for(viewer.get(), QUIET_SECONDS)
                except TimeoutError:
                    text = ": nothing new\n\n"
        finally:
            self._viewers.discard(viewer)

    async def describe_clients(self, name: str) -> dict[str, Any] | None:
        """As clients.py has them, or why they cannot be read; None: no run has that name."""
        error: Exception
        for _ in range(2):  # a run that goes back to its checkpoint cuts its records off while they are read
            async with self._looking:
                await self._look()
                run = self.watch.runs.get(name)
                try:
                    return None if run is None else await asyncio.to_thread(describe_clients, run)
                except (ValueError, OSError) as trouble:
                    error = trouble
            await asyncio.sleep(LOOK_SECONDS)
        return {"name": name, "error": str(error)}

    async def _look(self) -> None:
        news = await asyncio.to_thread(self.watch.look)
        if news is not None:
            text = to_event("news", news)
            for viewer in self._viewers:
                self._tell(viewer, text)

    @staticmethod
    def _tell(viewer: asyncio.Queue[str | None], text: str | None) -> None:
        if viewer.full():
            while not viewer.empty():
                viewer.get_nowait()
            text = None
        viewer.put_nowait(text)


def to_event(kind: str, content: dict[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(content, separators=(',', ':'), allow_nan=False)}\n\n"


def make_app(watch: Watch, token: str, is_over: Callable[[], bool] = lambda: False) -> Starlette:
    hub, script = Hub(watch), read_script() + files("laconic.live").joinpath("live.js").read_text("utf-8")
    policy = f"{NOTHING_ELSE}; script-src '{hash_script(script)}'; connect-src 'self'; img-src data:"

    async def page(request: Request) -> Response:
        return HTMLResponse(
            build_page("/".join(watch.folder.resolve().parts[-2:]), script), headers={"Content-Security-Policy": policy}
        )

    async def events(request: Request) -> Response:
        return StreamingResponse(hub.follow(), media_type="text/event-stream")

    async def clients(request: Request) -> Response:
        found = await hub.describe_clients(request.query_params.get("run", ""))
        return JSONResponse({"error": "no such run"}, 404) if found is None else JSONResponse(found)

    def guard(answer: Answer) -> Answer:
        async def check(request: Request) -> Response:
            given = request.query_params.get("token", "")
            is_known = secrets.compare_digest(given.encode(), token.encode())  # takes as long for a near miss
            response = await answer(request) if is_known else refuse()
            for name, value in HEADERS.items():
                response.headers[name] = value
            return response

        return check

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(hub.keep_looking(is_over))
        yield
        task.cancel()

    answers = {"/": page, "/events": events, "/clients": clients}
    routes = [Route(path, guard(answer)) for path, answer in answers.items()]
    return Starlette(routes=routes, lifespan=lifespan)


def build_page(folder: str, script: str) -> str:
    head = show_head("Laconic live", read_style() + read_file("live.css"), NO_ICON)
    return head + Template(read_file("page.html")).substitute(folder=escape(folder), script=script)


def refuse() -> Response:
    text = show_head("Laconic live: token needed", read_style(), NO_ICON) + read_file("refused.html")
    return HTMLResponse(text, 403, headers={"Content-Security-Policy": NOTHING_ELSE})


def read_file(name: str) -> str:
    return files("laconic.live").joinpath(name).read_text("utf-8")


def follow(
    folder: Path | None, host: str, port: int | None, say: Callable[[str], None], tell_url: Callable[[str], None]
) -> None:
    """Serves the page until Ctrl-C. folder: None: where runs go by default, which need not be there yet."""
    if folder is not None:
        check_folder(folder)
    watch, token = Watch(folder or RUNS), secrets.token_urlsafe(16)
    with listen(host, port) as listener:
        app = make_app(watch, token, lambda: server.should_exit)
        config = uvicorn.Config(app, log_level="error", access_log=False, ws="none", server_header=False, lifespan="on")
        server = uvicorn.Server(config)
        if warning := warn(listener):
            say(warning)
        say(f"following {watch.folder}; Ctrl-C ends it.  Open:")
        tell_url(make_url(listener, token))
        try:
            server.run([listener])
        except KeyboardInterrupt as stop:  # uvicorn raises again what stopped it
            if find_number(stop) != signal.SIGINT:
                raise
