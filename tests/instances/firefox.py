"""Firefox, told what to do by WebDriver BiDi (w3.org/TR/webdriver-bidi), which it speaks of itself.

Its pages have the few methods of Playwright's that tests call, so that one test is tried in both.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest
from conftest import NO_FIREFOX

ANSWER_S = 120
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Space": " "}
PREFERENCES = {
    "browser.shell.checkDefaultBrowser": False,
    # Its panel would take the keys.
    "browser.download.alwaysOpenPanel": False,
    "browser.download.folderList": 2,
    "datareporting.policy.dataSubmissionEnabled": False,
    # Pages of tests are left whatever they hold.
    "dom.disable_beforeunload": True,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}


class Session:
    """A connection over which commands are sent and answered, from a thread of its own."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._n = 0
        self._waiting: dict[int, asyncio.Future[dict]] = {}
        self._await(self._connect(url))

    def _await(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(ANSWER_S)

    async def _connect(self, url: str) -> None:
        self._http = aiohttp.ClientSession()
        self._socket = await self._http.ws_connect(url, max_msg_size=0)
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                self._waiting.pop(told["id"]).set_result(told)

    async def _ask(self, method: str, params: dict) -> dict:
        self._n += 1
        self._waiting[self._n] = answer = self._loop.create_future()
        await self._socket.send_json({"id": self._n, "method": method, "params": params})
        return await answer

    def ask(self, method: str, **params: object) -> dict:
        told = self._await(self._ask(method, params))
        assert told["type"] == "success", f"{method}: {told.get('message')}"
        return told["result"]

    def close(self) -> None:
        self._await(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self._socket.close()
        await self._http.close()


class Keyboard:
    def __init__(self, page: Page) -> None:
        self._page = page

    def press(self, key: str) -> None:
        code = KEYS[key]
        actions = [{"type": "keyDown", "value": code}, {"type": "keyUp", "value": code}]
        self._page.act({"type": "key", "id": "keys", "actions": actions})


class Page:
    """A tab whose cookies and stores are its own."""

    def __init__(self, session: Session, viewport: dict[str, int]) -> None:
        self._session = session
        self._user = session.ask("browser.createUserContext")["userContext"]
        made = session.ask("browsingContext.create", type="tab", userContext=self._user)
        self._context = made["context"]
        self.keyboard = Keyboard(self)
        self.set_viewport_size(viewport)
        # Keys go to the tab that is looked at.
        self._ask("browsingContext.activate")

    def _ask(self, method: str, **params: object) -> dict:
        return self._session.ask(method, context=self._context, **params)

    def act(self, *sources: dict) -> None:
        self._ask("input.performActions", actions=list(sources))

    def set_viewport_size(self, viewport: dict[str, int]) -> None:
        self._ask("browsingContext.setViewport", viewport=viewport)

    def goto(self, url: str) -> None:
        self._ask("browsingContext.navigate", url=url, wait="complete")

    def reload(self) -> None:
        self._ask("browsingContext.reload", wait="complete")

    def _evaluated(self, expression: str) -> dict:
        told = self._session.ask(
            "script.evaluate",
            expression=expression,
            target={"context": self._context},
            awaitPromise=True,
        )
        assert told["type"] == "success", told["exceptionDetails"]["text"]
        return told["result"]

    def evaluate(self, expression: str):
        """Return the value of an expression, or of what a function without arguments returns."""
        is_function = re.match(r"(async )?\(\) =>", expression)
        call = f"({expression})()" if is_function else f"(\n{expression}\n)"
        told = self._evaluated(f"(async () => JSON.stringify(await {call}))()")
        return json.loads(told["value"]) if told["type"] == "string" else None

    def text_content(self, selector: str) -> str:
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def _element(self, selector: str) -> dict:
        found = self._evaluated(f"document.querySelector({json.dumps(selector)})")
        return {"sharedId": found["sharedId"]}

    def set_input_files(self, selector: str, *paths: Path) -> None:
        files = [str(path) for path in paths]
        self._ask("input.setFiles", element=self._element(selector), files=files)

    def click(self, selector: str) -> None:
        element = self._element(selector)
        self.evaluate(
            f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})"
        )
        origin = {"type": "element", "element": element}
        actions = [
            {"type": "pointerMove", "x": 0, "y": 0, "origin": origin},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        self.act({"type": "pointer", "id": "mouse", "actions": actions})

    def select_option(self, selector: str, value: str) -> None:
        self.evaluate(
            f"""() => {{
                const list = document.querySelector({json.dumps(selector)});
                list.value = {json.dumps(value)};
                list.dispatchEvent(new Event("change"));
            }}"""
        )

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._ask("browsingContext.captureScreenshot")["data"]))

    def close(self) -> None:
        self._session.ask("browser.removeUserContext", userContext=self._user)


class Firefox:
    def __init__(self, session: Session) -> None:
        self._session = session

    def new_page(self, viewport: dict[str, int]) -> Page:
        return Page(self._session, viewport)


@contextmanager
def firefox(language: str = "en", **preferences: object):
    """Lend headless Firefox, whose reader speaks a language."""
    named = os.environ.get("DATACOLLECT_FIREFOX")
    path = named or shutil.which("firefox-esr") or shutil.which("firefox")
    if path is None:
        pytest.skip(NO_FIREFOX)
    told = {**PREFERENCES, "intl.accept_languages": language, **preferences}
    with tempfile.TemporaryDirectory(prefix="firefox-") as folder:
        profile = Path(folder, "profile")
        profile.mkdir()
        told["browser.download.dir"] = folder
        rows = [f'user_pref("{key}", {json.dumps(value)});\n' for key, value in told.items()]
        (profile / "user.js").write_text("".join(rows))
        log = Path(folder, "log")
        with log.open("wb") as file:
            process = subprocess.Popen(
                (path, "--headless", "--profile", profile, "--remote-debugging-port", "0"),
                stdout=file,
                stderr=file,
                env=os.environ | {"HOME": folder, "MOZ_CRASHREPORTER_DISABLE": "1"},
            )
        try:
            session = Session(f"{_address(process, log)}/session")
            session.ask("session.new", capabilities={"alwaysMatch": {"acceptInsecureCerts": True}})
            yield Firefox(session)
            session.close()
        finally:
            process.terminate()
            process.wait()


def _address(process: subprocess.Popen, log: Path) -> str:
    waited = threading.Event()
    for _ in range(10 * ANSWER_S):
        found = re.search(r"WebDriver BiDi listening on (ws://\S+)", log.read_text())
        if found:
            return found[1]
        assert process.poll() is None, log.read_text()
        waited.wait(0.1)
    raise AssertionError(f"Firefox does not say where it listens: {log.read_text()}")
