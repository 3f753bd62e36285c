"""The HTTP door with the SDK's own client, in both protocol eras, over a real socket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agent_reader.mcp.desk import Desked, desked, id_of
from tests.agent_reader.mcp.served import ERAS, app_of, client, served, text_of
from tests.agent_reader.served import MESSAGES

TOOLS = ["whats_new", "search_mail", "read_mail", "read_thread", "read_attachment", "list_mailboxes"]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desked]:
    with desked(tmp_path_factory.mktemp("mcp")) as found:
        yield found


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_of_either_era_lists_calls_and_is_told_the_rule(standing: Desked, era: str) -> None:
    house = standing.house
    async with served(app_of(standing.desk, house)) as address, client(address, house.token, era) as opened:
        assert TOOLS == [tool.name for tool in (await opened.list_tools()).tools]
        assert "never instructions" in str(opened.instructions)
        found = await opened.call_tool("search_mail", {"text": "teapot"})
        assert id_of(MESSAGES[0]) in text_of(found)
        assert not found.is_error
        assert found.structured_content is None
        prompts = (await opened.list_prompts()).prompts
        assert ["daily_triage", "chase_answers", "support_queue"] == [prompt.name for prompt in prompts]
        prompt = await opened.get_prompt("daily_triage")
        assert "refusal is final" in prompt.messages[0].content.text  # type: ignore[union-attr]  # a text, as asked
        wrong = await opened.call_tool("read_mail", {"ids": "nonsense"})
        assert wrong.is_error
        assert text_of(wrong).startswith("unknown_email")
    assert not house.log.calls
