"""The tools over the Model Context Protocol, on standard input and output.

What a tool answers stands in the result twice, as text for a model and as data for a program; what
is refused is a result marked as an error, which a model can read and mend. While the judge works,
progress is told to clients that ask for it, so that they do not give the call up.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ToolType

import kernelwright
from kernelwright.configs.tools.desk import Desk
from kernelwright.configs.tools.session import Refused, Session
from kernelwright.configs.tools.tool import TOOLS, Tool

INSTRUCTIONS = (
    "Search for a fast kernel. Read `campaign` first: it says what is computed, how a candidate is "
    "written and what may be spent. Hand candidates in with `submit`; each costs one trial of the "
    "budget. `check` and `estimate` cost nothing. A screen's speedup is an estimate; only `finish` "
    "measures claims, and ends the search."
)
# Seconds between two reports of progress, and calls of a kind that may be at work at a time: those
# that wait for the judge, and those that only look and do not wait for the others.
PROGRESS_S, MOST_CALLS = 2.0, 16
_LOG = logging.getLogger(__name__)


def serve(session: Session) -> None:
    """Serve a session until the client goes away."""
    anyio.run(_serve, session)


def make_server(session: Session) -> Server[Any]:
    """The server of a session, for any transport."""
    desks: dict[str, Desk] = {}
    tools = {tool.name: tool for tool in TOOLS}
    looking, waiting = anyio.CapacityLimiter(MOST_CALLS), anyio.CapacityLimiter(MOST_CALLS)

    async def list_tools(
        context: ServerRequestContext[Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        del context, params
        return ListToolsResult(tools=[_described(tool) for tool in TOOLS])

    async def call_tool(
        context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            return _error(f"expected a tool ({', '.join(tools)}), found {params.name!r:.100}")
        who = _client_of(context)
        if who not in desks:
            desks[who] = Desk(session, lambda: who)
        desk = desks[who]
        limit = looking if tool.reads_only else waiting
        arguments = dict(params.arguments or {})
        return await _worked(context, session, lambda: tool.call(desk, arguments), limit)

    return Server(
        "kernelwright",
        version=kernelwright.__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _serve(session: Session) -> None:
    server = make_server(session)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _described(tool: Tool) -> ToolType:
    hints = ToolAnnotations(read_only_hint=tool.reads_only, open_world_hint=False)
    return ToolType(
        name=tool.name, description=tool.description, input_schema=tool.schema, annotations=hints
    )


async def _worked(
    context: ServerRequestContext[Any],
    session: Session,
    work: Callable[[], dict[str, Any]],
    limit: anyio.CapacityLimiter,
) -> CallToolResult:
    """The result of work that waits for the judge, off the loop; a client that gives up loses the
    answer, and the trial is recorded all the same.
    """
    async with anyio.create_task_group() as group:
        group.start_soon(_tell_progress, context, session)
        try:
            answer = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limit)
            result = _answer(answer)
        except Refused as error:
            result = _error(str(error))
        except Exception as error:  # noqa: BLE001 - our own bug; the server goes on
            _LOG.exception("a tool failed")
            result = _error(f"the tool failed: {type(error).__name__}: {error}")
        group.cancel_scope.cancel()
    return result


async def _tell_progress(context: ServerRequestContext[Any], session: Session) -> None:
    count = 0
    while True:
        await anyio.sleep(PROGRESS_S)
        count += 1
        seen = session.progress
        said = session.state if seen is None else f"{seen.phase}: {seen.done} of {seen.total}"
        await context.session.report_progress(float(count), None, said)


def _answer(value: dict[str, Any]) -> CallToolResult:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=value)


def _error(message: str) -> CallToolResult:
    text = message[:4000].encode("utf-8", "replace").decode()
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _client_of(context: ServerRequestContext[Any]) -> str:
    """What a client calls itself, as it may stand in a record."""
    params = context.session.client_params
    info = None if params is None else params.client_info
    name = "client" if info is None else f"{info.name} {info.version}"
    return "".join(c for c in name[:60] if c.isprintable()).strip() or "client"
