"""One message of the client in, one of ours out: passed on to the reader, or answered by the two tools here."""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agent_reader.relay.endpoint import Endpoint, Reply, Unreachable
from agent_reader.relay.proposals import ProposalTools

# The envelope of revision 2026-07-28: each request names its revision itself.
_REVISION_IN_META: Final = "io.modelcontextprotocol/protocolVersion"
_REVISION: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

# What the streamable HTTP transport wants said again in header fields.
_NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

_PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INTERNAL_ERROR: Final = -32603

Message = dict[str, Any]


@dataclass(slots=True)
class Relay:
    """Answers the requests of one client; any thread may call. `tools` is None without a proposer token."""

    reader: Endpoint
    tools: ProposalTools | None
    # What `initialize` agreed on, for the messages after it.
    _agreed: str | None = field(default=None, init=False)

    def answer(self, request: Message) -> Message:
        """Return the response to a request."""
        method, params = request.get("method"), request.get("params")
        params = params if isinstance(params, dict) else {}
        try:
            if method == "tools/call" and self.tools is not None and params.get("name") in self.tools.names:
                return self._own_call(self.tools, request, params)
            answer = self._passed_on(request, str(method), params)
        except Unreachable as error:
            return failed(request, f"reader_unreachable: The reader did not answer ({error.why}). {_ASK}")
        result = answer.get("result")
        if isinstance(result, dict):
            if method == "initialize" and isinstance(result.get("protocolVersion"), str):
                self._agreed = result["protocolVersion"]
            if method == "tools/list" and isinstance(result.get("tools"), list) and not result.get("nextCursor"):
                result["tools"] += [] if self.tools is None else self.tools.descriptions()
        return answer

    def _own_call(self, tools: ProposalTools, request: Message, params: Message) -> Message:
        arguments = params.get("arguments")
        text, is_error = tools.call(params["name"], arguments if isinstance(arguments, dict) else {})
        return _result(request, text, is_error=is_error)

    def _passed_on(self, request: Message, method: str, params: Message) -> Message:
        reply = self.reader.request("POST", "/mcp", request, self._header_fields(method, params))
        match reply.content:
            case {"jsonrpc": "2.0", "id": _}:
                answer: Message = reply.content
                # What could not be read there has no id; here it was a request.
                return answer | {"id": request["id"]}
            case _:
                return failed(request, _refused(reply))

    def _header_fields(self, method: str, params: Message) -> Mapping[str, str]:
        named = _revision(params)
        if named is None:
            return {} if self._agreed is None or method == "initialize" else {"MCP-Protocol-Version": self._agreed}
        fields = {"MCP-Protocol-Version": named, "Mcp-Method": _field_value(method)}
        name = params.get(_NAMED_BY.get(method, ""))
        return fields | ({"Mcp-Name": _field_value(name)} if isinstance(name, str) else {})


_ASK: Final = "Ask the person who runs it to look whether agent-reader is running, then try again."


def _refused(reply: Reply) -> str:
    return reply.problem() or f"reader_refused: The reader refused this message (status {reply.status}). {_ASK}"


def failed(request: Message, text: str) -> Message:
    """Return the response to a request that failed: a tool call is the model's to read, any other the client's."""
    if request.get("method") == "tools/call":
        return _result(request, text, is_error=True)
    return error_response(request["id"], INTERNAL_ERROR, text)


def _result(request: Message, text: str, *, is_error: bool) -> Message:
    result: Message = {"content": [{"type": "text", "text": text}], "isError": is_error}
    params = request.get("params")
    if isinstance(params, dict) and _revision(params) is not None:
        result["resultType"] = "complete"
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def error_response(request_id: object, code: int, message: str) -> Message:
    """Return a JSON-RPC error."""
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}


class Malformed(Exception):  # noqa: N818 - names what the line is
    """A line that is no message; `response` says so to the client."""

    def __init__(self, request_id: object, code: int, text: str) -> None:
        super().__init__(text)
        self.response = error_response(request_id, code, text)


def parsed(line: bytes) -> Message:
    """Return the message on a line. Raises `Malformed`."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise Malformed(None, _PARSE_ERROR, "The line is no JSON.") from None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise Malformed(None, INVALID_REQUEST, "The line is no JSON-RPC 2.0 message.")
    request_id = message.get("id")
    if "id" in message and (isinstance(request_id, bool) or not isinstance(request_id, str | int)):
        raise Malformed(None, INVALID_REQUEST, "The id is neither a string nor a whole number.")
    if "method" in message and not isinstance(message["method"], str):
        raise Malformed(request_id, INVALID_REQUEST, "The method is no string.")
    return message


def _revision(params: Mapping[str, Any]) -> str | None:
    meta = params.get("_meta")
    named = meta.get(_REVISION_IN_META) if isinstance(meta, dict) else None
    return named if isinstance(named, str) and _REVISION.fullmatch(named) else None


def _field_value(text: str) -> str:
    """A value as header fields carry it: what is not plain ASCII goes as base64."""
    if text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode('ascii')}?="
