from typing import Any

import pytest
from pydantic import ValidationError

from shared.proposal import MAX_REASON_CHARACTERS, ProposalRequest

RIGHT: dict[str, Any] = {"emailId": "M" + "0" * 32, "from": "incoming", "to": "processed"}


def test_a_right_request_is_read() -> None:
    request = ProposalRequest.model_validate(RIGHT | {"reason": "x" * MAX_REASON_CHARACTERS, "queue": "support"})
    assert ("incoming", "processed", "support") == (request.from_role, request.to_role, request.queue)


@pytest.mark.parametrize(
    "change",
    [
        {"emailId": "M123"},
        {"emailId": "X" + "0" * 32},
        {"emailId": 5},
        {"from": "INBOX/../x"},
        {"to": ""},
        {"to": "processed\r\n"},
        {"to": ["processed"]},
        {"reason": "x" * (MAX_REASON_CHARACTERS + 1)},
        {"reason": "bell \x07"},
        {"queue": "Support Queue"},
        {"mailbox": "Trash"},
        {"keywords": {}},
    ],
)
def test_anything_else_is_refused_and_not_repeated(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        ProposalRequest.model_validate(RIGHT | change)
    assert "input_value" not in str(caught.value)


@pytest.mark.parametrize("missing", ["emailId", "from", "to"])
def test_what_is_missing_is_named(missing: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ProposalRequest.model_validate({key: value for key, value in RIGHT.items() if key != missing})
    assert missing in str(caught.value)
