"""agent-jmap-mcp: the client under its MCP server; it names the submission capability in every request."""

import contextlib
import os

from agent_jmap_mcp.client import JMAPClient
from steps import step

client = JMAPClient(f"{os.environ['READER']}/.well-known/jmap", token=os.environ["TOKEN"])


@step("session")
def _() -> None:
    assert "shop" == client.discover_session()["primaryAccounts"]["urn:ietf:params:jmap:mail"]


@step("mailboxes")
def _() -> None:
    assert {"INBOX", "Processed"} == {each.name for each in client.get_mailboxes()}


@step("search by reference")
def _() -> None:
    assert ["An order"] == [each.subject for each in client.list_emails("INBOX", query="teapot")]


@step("reading", "its own `get_email` fails at a message without Cc, where RFC 8621 §4.1.2.3 has null")
def _() -> None:
    (header,) = client.list_emails("INBOX", subject_contains="receipt")
    with contextlib.suppress(TypeError):
        client.get_email(header.id)
        raise AssertionError("`get_email` can be used now: take it for this step")
    asked = {"accountId": "shop", "ids": [header.id], "properties": ["bodyValues"], "fetchTextBodyValues": True}
    ((_, got, _),) = client.request([["Email/get", asked, "0"]])["methodResponses"]
    assert "Grüße aus Köln" in str(got["list"][0]["bodyValues"])


@step("Email/changes", "has no method for it; asked by its general `request`")
def _() -> None:
    asked = ["Email/changes", {"accountId": "shop", "sinceState": os.environ["SINCE"]}, "0"]
    ((_, changes, _),) = client.request([asked])["methodResponses"]
    assert 1 == len(changes["created"])
