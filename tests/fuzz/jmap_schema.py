"""The JMAP endpoint as an OpenAPI 3.1 document, for fuzzers: every method with the arguments that it knows."""

from __future__ import annotations

from typing import Any, Final

from agent_reader.jmap.capabilities import CORE, MAIL, SUBMISSION, VACATION_RESPONSE
from agent_reader.jmap.methods import METHODS

_UNSIGNED: Final = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
_SIGNED: Final = {"type": "integer", "minimum": -(2**53) + 1, "maximum": 2**53 - 1}
_TEXT: Final = {"type": "string", "maxLength": 40}
_BOOLEAN: Final = {"type": "boolean"}
_IDS: Final = {"type": ["array", "null"], "items": _TEXT, "maxItems": 5}
_PROPERTIES: Final = {
    "type": ["array", "null"],
    "items": {"anyOf": [_TEXT, {"enum": ["id", "subject", "header:From:asAddresses", "bodyStructure", "bodyValues"]}]},
    "maxItems": 5,
}
_CONDITION: Final = {
    "type": "object",
    "properties": {
        "text": _TEXT,
        "body": _TEXT,
        "subject": _TEXT,
        "from": _TEXT,
        "header": {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 2},
        "before": {"anyOf": [_TEXT, {"const": "2026-11-30T00:00:00Z"}]},
        "after": {"anyOf": [_TEXT, {"const": "2026-11-01T00:00:00Z"}]},
        "minSize": _UNSIGNED,
        "maxSize": _UNSIGNED,
        "hasKeyword": {"anyOf": [_TEXT, {"enum": ["$seen", "$flagged"]}]},
        "allInThreadHaveKeyword": _TEXT,
        "hasAttachment": _BOOLEAN,
        "inMailbox": _TEXT,
        "inMailboxOtherThan": {"type": "array", "items": _TEXT, "maxItems": 3},
        "name": _TEXT,
        "role": {"type": ["string", "null"]},
    },
    "additionalProperties": False,
}
_FILTER: Final = {
    "anyOf": [
        {"type": "null"},
        _CONDITION,
        {
            "type": "object",
            "properties": {
                "operator": {"enum": ["AND", "OR", "NOT"]},
                "conditions": {"type": "array", "items": _CONDITION, "maxItems": 4},
            },
            "required": ["operator", "conditions"],
            "additionalProperties": False,
        },
    ]
}
_SORT: Final = {
    "type": ["array", "null"],
    "maxItems": 3,
    "items": {
        "type": "object",
        "properties": {
            "property": {"anyOf": [_TEXT, {"enum": ["receivedAt", "subject", "from", "size", "hasKeyword", "name"]}]},
            "isAscending": _BOOLEAN,
            "keyword": _TEXT,
            "collation": {"enum": ["i;unicode-casemap", "i;ascii-casemap", "i;nonsense"]},
        },
        "required": ["property"],
        "additionalProperties": False,
    },
}
_REFERENCE: Final = {
    "type": "object",
    "properties": {
        "resultOf": {"enum": ["0", "1", "2", ""]},
        "name": {"enum": sorted(METHODS)},
        "path": {"enum": ["/ids", "/list/*/id", "/list/*/threadId", "/created", "/", "", "/list/999", "/~2"]},
    },
    "required": ["resultOf", "name", "path"],
}
_BODIES: Final = {
    "bodyProperties": _PROPERTIES,
    "fetchTextBodyValues": _BOOLEAN,
    "fetchHTMLBodyValues": _BOOLEAN,
    "fetchAllBodyValues": _BOOLEAN,
    "maxBodyValueBytes": _UNSIGNED,
}
_QUERY: Final = {
    "filter": _FILTER,
    "sort": _SORT,
    "position": _SIGNED,
    "anchor": _TEXT,
    "anchorOffset": _SIGNED,
    "limit": _UNSIGNED,
    "calculateTotal": _BOOLEAN,
    "collapseThreads": _BOOLEAN,
}
_OF_KIND: Final[dict[str, dict[str, Any]]] = {
    "get": {"ids": _IDS, "#ids": _REFERENCE, "properties": _PROPERTIES} | _BODIES,
    "changes": {"sinceState": _TEXT, "maxChanges": _UNSIGNED},
    "query": _QUERY,
    "queryChanges": {
        "filter": _FILTER,
        "sort": _SORT,
        "sinceQueryState": _TEXT,
        "maxChanges": _UNSIGNED,
        "upToId": _TEXT,
    },
    "parse": {"blobIds": _IDS, "#blobIds": _REFERENCE, "properties": _PROPERTIES} | _BODIES,
    "set": {"create": {"type": "object"}, "destroy": _IDS, "ifInState": _TEXT},
}
_SNIPPETS: Final = {"filter": _FILTER, "emailIds": _IDS, "#emailIds": _REFERENCE}


def jmap_schema(account_ids: list[str], blob_ids: list[str]) -> dict[str, Any]:
    """The document; the ids are some that exist, and others are asked for too."""
    calls = [_call(name, account_ids) for name in sorted(METHODS)] + [_call("Nothing/get", account_ids)]
    request = {
        "type": "object",
        "properties": {
            "using": {
                "type": "array",
                "items": {"enum": [CORE, MAIL, SUBMISSION, VACATION_RESPONSE, "urn:x-mailwarrant:agent"]},
                "maxItems": 5,
            },
            "methodCalls": {"type": "array", "items": {"anyOf": calls}, "maxItems": 6},
            "createdIds": {"type": "object", "additionalProperties": _TEXT},
        },
        "required": ["using", "methodCalls"],
    }
    responses = {
        "type": "object",
        "properties": {"methodResponses": {"type": "array"}, "sessionState": {"type": "string"}},
        "required": ["methodResponses", "sessionState"],
    }
    body = {"required": True, "content": {"application/json": {"schema": request}}}
    known = {"accountId": {"enum": account_ids}, "blobId": {"enum": blob_ids}, "name": {"const": "a.eml"}}
    download: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"anyOf": [some, _TEXT]}}
        for name, some in known.items()
    ]
    download.append({"name": "type", "in": "query", "required": False, "schema": _TEXT})
    return {
        "openapi": "3.1.0",
        "info": {"title": "The reader's JMAP", "version": "1"},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": {
            "/.well-known/jmap": {"get": {"responses": _responses({"type": "object"})}},
            "/jmap/api": {"post": {"requestBody": body, "responses": _responses(responses)}},
            "/jmap/download/{accountId}/{blobId}/{name}": {
                "get": {"parameters": download, "responses": _responses({})}
            },
        },
    }


def _call(name: str, account_ids: list[str]) -> dict[str, Any]:
    kind = _SNIPPETS if name == "SearchSnippet/get" else _OF_KIND.get(name.partition("/")[2], {})
    account = {"anyOf": [{"enum": account_ids}, _TEXT]}
    arguments: dict[str, Any] = {"type": "object", "properties": {"accountId": account} | kind}
    if name != "Core/echo":
        arguments["required"] = ["accountId"]
    return {
        "type": "array",
        "prefixItems": [{"const": name}, arguments, {"enum": ["0", "1", "2", "a b", ""]}],
        "minItems": 3,
        "maxItems": 3,
    }


def _responses(schema: dict[str, Any]) -> dict[str, Any]:
    problem = {"type": "object", "properties": {"type": {"type": "string"}, "status": {"type": "integer"}}}
    refused = {
        "description": "refused",
        "content": {"application/problem+json": {"schema": problem | {"required": ["type", "status"]}}},
    }
    answered = (
        {"description": "answered", "content": {"application/json": {"schema": schema}}}
        if schema
        else {"description": "octets"}
    )
    return {"200": answered} | dict.fromkeys(("400", "401", "404", "405", "413", "415", "416", "429"), refused)
