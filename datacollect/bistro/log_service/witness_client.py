"""Client of witnesses, over connections that are kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from datacollect.net.tls import web_context

if TYPE_CHECKING:
    from types import TracebackType

    from aiohttp import ClientSession, StreamReader

ANSWER_S = 5.0
MOST_ANSWER_BYTES = 16_384


class WitnessClient:
    """Sends bodies to witnesses; their certificates are verified as the system does."""

    async def __aenter__(self) -> WitnessClient:
        """Begin, in the running loop."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=ANSWER_S)
        # Whom this host trusts now: aiohttp would take whom it trusted when it was imported.
        connector = aiohttp.TCPConnector(ssl=web_context())
        self._session: ClientSession = aiohttp.ClientSession(connector=connector, timeout=timeout)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Close all connections."""
        await self._session.close()

    async def ask(self, url: str, body: bytes) -> tuple[int | None, bytes]:
        """Return status and body of the answer; status None: there was none, and why in words."""
        import aiohttp

        try:
            async with self._session.post(url, data=body, allow_redirects=False) as response:
                return response.status, await _beginning(response.content)
        except (aiohttp.ClientError, TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            return None, (str(error) or type(error).__name__).encode()


async def _beginning(content: StreamReader) -> bytes:
    """Return an answer's bytes, as many as any answer needs; it may come in pieces."""
    found = b""
    while len(found) < MOST_ANSWER_BYTES:
        part = await content.read(MOST_ANSWER_BYTES - len(found))
        if not part:
            break
        found += part
    return found
