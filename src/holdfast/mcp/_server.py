"""What an MCP server answers: tools that are listed and called, resources read."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import AsyncGenerator, Coroutine, Iterable
from typing import Any, TypeVar

import msgspec
from mcp.server import Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    ResourceLink,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
)

from holdfast import __version__
from holdfast._api.store import AsyncStore
from holdfast.errors import Closed, HoldfastError
from holdfast.mcp import _resources
from holdfast.tools import AsyncToolset
from holdfast.tools._errors import Refusal, as_result

T = TypeVar("T")
Asked = ServerRequestContext[None]

# Who reads checkpoints may read everything: so these tools must be offered as well.
READERS = frozenset({"agent_load", "conversation_load"})

# The revision of the protocol that first had links to resources in results.
LINKS_SINCE = "2025-06-18"

INSTRUCTIONS = """\
Holdfast keeps agents, their conversations and checkpoints of both, beyond this session.
Look before you write: agent_list, conversation_list and conversation_search find ids, \
agent_load and conversation_load read. Make a checkpoint before anything risky; \
checkpoint_restore brings it back and can be undone. Long lists give a cursor to call \
again with, long values a note how to get all of them. An error says what to do next. \
Delete only what the user asked to have deleted."""

READING = " Here everything can be read and nothing changed."

logger = logging.getLogger("holdfast")


def make_server(
    store: AsyncStore,
    *,
    read_only: bool = False,
    tools: Iterable[str] | None = None,
) -> Server[None]:
    """An MCP server for a store that is open; ``tools`` names those it shall offer.

    With ``read_only`` it offers the seven that change nothing.
    """
    answering = Answering(store, AsyncToolset(store, only=tools, read_only=read_only))
    offers: dict[str, Any] = {}
    if answering.reads_checkpoints:
        offers = {
            "on_list_resources": answering.list_resources,
            "on_list_resource_templates": answering.list_templates,
            "on_read_resource": answering.read_resource,
        }
    server: Server[None] = Server(
        "holdfast",
        version=__version__,
        instructions=INSTRUCTIONS + (READING if read_only else ""),
        lifespan=answering.until_settled,
        on_list_tools=answering.list_tools,
        on_call_tool=answering.call_tool,
        **offers,
    )
    server.middleware.append(with_object)
    return server


async def with_object(ctx: Asked, call_next: CallNext) -> HandlerResult:
    """Let a tool refuse arguments that are no object, in words that a model can read.

    The server would refuse them by itself, with an error of the protocol that is blank.
    """
    params = ctx.params or {}
    given = params.get("arguments")
    if ctx.method == "tools/call" and not isinstance(given, dict | None):
        named = {**params, "arguments": {"arguments": given}}
        ctx = dataclasses.replace(ctx, params=named)
    return await call_next(ctx)


class Answering:
    """The answers of one server."""

    def __init__(self, store: AsyncStore, tools: AsyncToolset) -> None:
        self._runner = store.runner
        self._tools = tools
        self._listed = [Tool.model_validate(form) for form in tools.mcp()]
        self._begun: set[asyncio.Future[Any]] = set()
        names = {tool.name for tool in tools.tools}
        self.reads_checkpoints = names >= READERS

    @contextlib.asynccontextmanager
    async def until_settled(self, server: Server[None]) -> AsyncGenerator[None]:
        """Let everything come to its end that was begun, before the store is closed."""
        del server
        try:
            yield
        finally:
            await asyncio.gather(*self._begun, return_exceptions=True)

    async def _settled(self, operation: Coroutine[Any, Any, T]) -> T:
        """What comes of an operation, which is told only once that nobody waits.

        The server tells a cancelled call so again and again, even while it cleans up.
        """
        task = asyncio.ensure_future(operation)
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise

    # --- tools ------------------------------------------------------------------------

    async def list_tools(
        self, asked: Asked, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        del asked, params  # fourteen are one page
        return ListToolsResult(tools=self._listed)

    async def call_tool(
        self, asked: Asked, params: CallToolRequestParams
    ) -> CallToolResult:
        result = await self._settled(self._called(params))
        if "error" in result:
            return CallToolResult(
                content=[TextContent(text=_spoken(result["error"]))],
                structured_content=result,
                is_error=True,
            )
        content: list[ContentBlock] = [TextContent(text=_encoded(result))]
        if self.reads_checkpoints and asked.protocol_version >= LINKS_SINCE:
            source = _resources.source_of(params.name, result)
            content += await self._settled(self._links(source)) if source else []
        return CallToolResult(content=content, structured_content=result)

    async def _called(self, params: CallToolRequestParams) -> dict[str, Any]:
        try:
            return await self._tools.call(params.name, params.arguments)
        except Closed as error:
            return as_result(error)
        except Exception:
            logger.exception("%s failed", params.name)
            hint = "Do not retry. Tell the user: the server's log says what happened."
            return as_result(Refusal("internal", f"{params.name} failed", hint))

    async def _links(self, source: str) -> list[ResourceLink]:
        try:
            found = await self._runner.run(_resources.link_to, source)
        except HoldfastError:
            return []  # the result is good without it
        return [] if found is None else [found]

    # --- resources --------------------------------------------------------------------

    async def list_resources(
        self, asked: Asked, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        del asked
        cursor = params.cursor if params else None
        listing = self._runner.run(_resources.list_heads, cursor)
        return await self._settled(self._read(listing, {"cursor": cursor}))

    async def list_templates(
        self, asked: Asked, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        del asked, params
        template = ResourceTemplate(
            name="checkpoint",
            uri_template=_resources.TEMPLATE,
            description=_resources.DESCRIPTION,
            mime_type=_resources.JSON,
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, asked: Asked, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        del asked
        reading = self._runner.run(_resources.read, params.uri)
        result = await self._settled(self._read(reading, {"uri": params.uri}))
        text = TextResourceContents(
            uri=params.uri, mime_type=_resources.JSON, text=_encoded(result)
        )
        return ReadResourceResult(contents=[text])

    async def _read(self, reading: Coroutine[Any, Any, T], about: dict[str, Any]) -> T:
        """What is read; here what went wrong can only be an error of the protocol."""
        try:
            return await reading
        except (Refusal, HoldfastError) as error:
            said = as_result(error)["error"]
            raise MCPError(
                code=INVALID_PARAMS,
                message=_spoken(said),
                data={**about, "code": said["code"]},
            ) from error


def _encoded(result: dict[str, Any]) -> str:
    return msgspec.json.encode(result).decode()


def _spoken(error: dict[str, str]) -> str:
    """An error as two sentences."""
    return f"{error['message'].rstrip('.')}. {error['hint']}"
