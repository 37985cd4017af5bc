"""The MCP server: lists and calls tools, lists and reads resources."""

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
RequestContext = ServerRequestContext[None]

# A client that reads checkpoints can read everything, so resources are offered only
# beside both of these tools.
READERS = frozenset({"agent_load", "conversation_load"})

# The first revision of the protocol with links to resources in results.
LINKS_SINCE = "2025-06-18"

INSTRUCTIONS = """\
Holdfast keeps agents, their conversations and checkpoints of both, beyond this session.
Look before you write: agent_list, conversation_list and conversation_search find ids, \
agent_load and conversation_load read. Make a checkpoint before anything risky; \
checkpoint_restore brings it back and can be undone. Lists have 20 items unless \
limit (1 to 500) says otherwise; where cursor is not null there are more: call \
again with it. Long values are shortened and marked … [+N characters]; part, such as \
state.notes, gives one in full. Null is the same as left out. An error says what to do \
next. Delete only what the user asked to have deleted."""

READING = " Here everything can be read and nothing changed."

logger = logging.getLogger("holdfast")


def make_server(
    store: AsyncStore, *, read_only: bool = False, tools: Iterable[str] | None = None
) -> Server[None]:
    """An MCP server for an open store; ``tools`` are the names of the tools to offer.

    With ``read_only`` it offers the twelve that change nothing.
    """
    requests = StoreRequests(
        store, AsyncToolset(store, only=tools, read_only=read_only, threads=True)
    )
    offers: dict[str, Any] = {}
    if requests.reads_checkpoints:
        offers = {
            "on_list_resources": requests.list_resources,
            "on_list_resource_templates": requests.list_templates,
            "on_read_resource": requests.read_resource,
        }
    server: Server[None] = Server(
        "holdfast",
        version=__version__,
        instructions=INSTRUCTIONS + (READING if read_only else ""),
        lifespan=requests.until_settled,
        on_list_tools=requests.list_tools,
        on_call_tool=requests.call_tool,
        **offers,
    )
    server.middleware.append(with_object)
    return server


async def with_object(ctx: RequestContext, call_next: CallNext) -> HandlerResult:
    """Let the tool refuse arguments that are not an object, with a readable message.

    The SDK would refuse them with a protocol error that has no text.
    """
    params = ctx.params or {}
    given = params.get("arguments")
    if ctx.method == "tools/call" and not isinstance(given, dict | None):
        named = {**params, "arguments": {"arguments": given}}
        ctx = dataclasses.replace(ctx, params=named)
    return await call_next(ctx)


class StoreRequests:
    """The requests of one server's clients, answered from its store."""

    def __init__(self, store: AsyncStore, tools: AsyncToolset) -> None:
        self._runner = store.runner
        self._tools = tools
        self._listed = [Tool.model_validate(form) for form in tools.mcp()]
        self._begun: set[asyncio.Future[Any]] = set()
        names = {tool.name for tool in tools.tools}
        self.reads_checkpoints = names >= READERS

    @contextlib.asynccontextmanager
    async def until_settled(self, server: Server[None]) -> AsyncGenerator[None]:
        """Wait for all operations in progress, before the store is closed."""
        del server
        try:
            yield
        finally:
            await asyncio.gather(*self._begun, return_exceptions=True)

    async def _settled(self, operation: Coroutine[Any, Any, T]) -> T:
        """The result of an operation, which is cancelled at most once.

        The SDK cancels a call again and again, even while the operation cleans up.
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
        self, request: RequestContext, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        del request, params  # all tools fit on one page
        return ListToolsResult(tools=self._listed)

    async def call_tool(
        self, request: RequestContext, params: CallToolRequestParams
    ) -> CallToolResult:
        result = await self._settled(self._called(params))
        if "error" in result:
            return CallToolResult(
                content=[TextContent(text=_sentences(result["error"]))],
                structured_content=result,
                is_error=True,
            )
        content: list[ContentBlock] = [TextContent(text=_encoded(result))]
        if self.reads_checkpoints and request.protocol_version >= LINKS_SINCE:
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
            return []  # the result is useful without a link
        return [] if found is None else [found]

    # --- resources --------------------------------------------------------------------

    async def list_resources(
        self, request: RequestContext, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        del request
        cursor = params.cursor if params else None
        listing = self._runner.run(_resources.list_heads, cursor)
        return await self._settled(self._read(listing, {"cursor": cursor}))

    async def list_templates(
        self, request: RequestContext, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        del request, params
        template = ResourceTemplate(
            name="checkpoint",
            uri_template=_resources.TEMPLATE,
            description=_resources.DESCRIPTION,
            mime_type=_resources.JSON,
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, request: RequestContext, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        del request
        reading = self._runner.run(_resources.read, params.uri)
        result = await self._settled(self._read(reading, {"uri": params.uri}))
        text = TextResourceContents(
            uri=params.uri, mime_type=_resources.JSON, text=_encoded(result)
        )
        return ReadResourceResult(contents=[text])

    async def _read(self, reading: Coroutine[Any, Any, T], about: dict[str, Any]) -> T:
        """The result of a read; resources can report errors only by the protocol."""
        try:
            return await reading
        except (Refusal, HoldfastError) as error:
            said = as_result(error)["error"]
            raise MCPError(
                code=INVALID_PARAMS,
                message=_sentences(said),
                data={**about, "code": said["code"]},
            ) from error


def _encoded(result: dict[str, Any]) -> str:
    return msgspec.json.encode(result).decode()


def _sentences(error: dict[str, str]) -> str:
    """The message and the hint of an error."""
    return f"{error['message'].rstrip('.')}. {error['hint']}"
