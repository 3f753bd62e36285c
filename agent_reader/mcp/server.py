"""The SDK's server with our handlers: what leaves is text, once, as the desk wrote it.

Imported late: the SDK takes a second. Without structured content no result is sent twice.
"""

from collections.abc import Mapping
from typing import Any, Final

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.concurrency import run_in_threadpool

from agent_reader.access import Agent
from agent_reader.door.keeper import MOST_THREADS
from agent_reader.errors import AccessUnavailable
from agent_reader.mcp.desk import AGENT_IN_SCOPE, IS_GONE_IN_SCOPE, Desk, IsGone, ToolAnswer
from agent_reader.mcp.prompts import RECIPES
from agent_reader.mcp.tools import annotations
from agent_reader.query.patience import Abandoned

NAME: Final = "mailwarrant"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
_GREETINGS: Final = frozenset({"initialize", "server/discover"})

_Context = ServerRequestContext[Any, Any]


def make_manager(desk: Desk, max_body_octets: int, public_url: str | None) -> StreamableHTTPSessionManager:
    """Return what serves both protocol eras over HTTP, without sessions: each request shows its token anew."""
    return StreamableHTTPSessionManager(
        make_server(desk),
        json_response=True,
        stateless=True,
        security_settings=_security(public_url),
        max_request_body_size=max_body_octets,
    )


def make_server(desk: Desk) -> Server[Any]:
    """Return the server: tools and prompts, and no other capability."""
    handlers = _Handlers(desk)
    server: Server[Any] = Server(
        NAME,
        title="Mailwarrant",
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )
    # In place of the SDK's own, which would look for collectors of traces.
    server.middleware[:] = [handlers.greet]
    return server


class _Handlers:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._threads = anyio.CapacityLimiter(MOST_THREADS)

    async def greet(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method in _GREETINGS and isinstance(result, dict):
            result["instructions"] = await run_in_threadpool(self._desk.instructions, _agent(ctx))
        return result

    async def list_tools(
        self, context: _Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        agent = _agent(context)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    title=tool.title,
                    description=tool.description,
                    input_schema=self._desk.schema(agent, tool),
                    annotations=types.ToolAnnotations.model_validate(annotations(tool)),
                )
                for tool in self._desk.tools(agent)
            ]
        )

    async def call_tool(self, context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        scope = _scope(context)
        # Threads of its own: calls that wait for their turn to read hold up neither a greeting nor the executor.
        answer = await anyio.to_thread.run_sync(
            self._answer, scope[AGENT_IN_SCOPE], scope[IS_GONE_IN_SCOPE], params, limiter=self._threads
        )
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)], is_error=answer.is_error
        )

    def _answer(self, agent: Agent, is_gone: IsGone, params: types.CallToolRequestParams) -> ToolAnswer:
        try:
            return self._desk.call(agent, params.name, params.arguments or {}, is_gone)
        except AccessUnavailable as error:
            return self._desk.unrecorded(error)
        except Abandoned:
            # Nobody gets it: the door knows that the client is gone.
            return ToolAnswer("", is_error=True)

    async def list_prompts(
        self, _context: _Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(name=recipe.name, title=recipe.title, description=recipe.description) for recipe in RECIPES
            ]
        )

    async def get_prompt(self, _context: _Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        for recipe in RECIPES:
            if recipe.name == params.name:
                said = types.TextContent(type="text", text=recipe.text)
                return types.GetPromptResult(
                    description=recipe.description, messages=[types.PromptMessage(role="user", content=said)]
                )
        names = ", ".join(recipe.name for recipe in RECIPES)
        raise MCPError(types.INVALID_PARAMS, f"There is no such prompt; there are {names}.")


def _agent(context: _Context) -> Agent:
    agent = _scope(context)[AGENT_IN_SCOPE]
    assert isinstance(agent, Agent), "the door lets nobody in without a token"
    return agent


def _scope(context: _Context) -> Mapping[str, Any]:
    assert context.request is not None, "every call comes by HTTP"
    scope: Mapping[str, Any] = context.request.scope
    return scope


def _security(public_url: str | None) -> TransportSecuritySettings:
    hosts = [name for host in _LOOPBACK for name in (host, f"{host}:*")]
    origins = [f"http://{host}" for host in hosts]
    if public_url is not None:
        hosts.append(public_url.partition("://")[2])
        origins.append(public_url)
    return TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=origins)
