"""RFC 5256 §2.1: the base subject, by which messages are threaded and sorted."""

import pytest

from shared.message import base_subject


@pytest.mark.parametrize(
    ("subject", "base"),
    [
        ("Boiler service", "Boiler service"),
        ("Re: Boiler service", "Boiler service"),
        ("RE:RE: Fwd: fw: Boiler service", "Boiler service"),
        ("Re: [List] fwd: Boiler service", "Boiler service"),
        ("[List] Boiler service", "Boiler service"),
        ("[a] [b] Boiler service", "Boiler service"),
        ("Re[2]: Boiler service", "Boiler service"),
        ("Re [x] : Boiler service", "Boiler service"),
        ("Boiler service (fwd)", "Boiler service"),
        ("Boiler service (FWD) (fwd) ", "Boiler service"),
        ("[Fwd: Boiler service]", "Boiler service"),
        ("[Fwd: Re: [List] Boiler service (fwd)]", "Boiler service"),
        ("  Boiler\t\r\n  service  ", "Boiler service"),
        ("[only a blob]", "[only a blob]"),
        ("Re:", ""),
        ("(fwd)", ""),
        ("", ""),
        ("Report: Boiler service", "Report: Boiler service"),
        ("Automatic reply: Quote 88", "Automatic reply: Quote 88"),
        ("Re Boiler service", "Re Boiler service"),
    ],
)
@pytest.mark.statement("101", "164")
def test_the_base_subject_is_what_replies_and_lists_leave_alone(subject: str, base: str) -> None:
    assert base == base_subject(subject)
