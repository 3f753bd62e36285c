"""The main job on a real mail server: read, propose, approve, move, and everything on record."""

import hashlib

from change_executor.imap_verbs import MOVE_TABLE
from shared.imap_guard import Guard, VerbTable
from shared.reader_verbs import READER_TABLE
from tests.change_executor.journal.test_audit import independent
from tests.end_to_end.houses import AGENT, Houses, Person, eventually
from tests.end_to_end.letters import RECEIVED, letter
from tests.servers.dovecot import Dovecot
from tests.servers.snapshot import MessageState


def _judged_by(table: VerbTable, lines: list[bytes]) -> None:
    """Every line that the server logged must be one that the table lets leave."""
    assert lines
    guard, idles = Guard(table), False
    for line in lines:
        if idles and line != b"DONE":
            # A connection that idles still, and the first line of the next.
            guard = Guard(table)
        idles = line.endswith(b" IDLE")
        # a SASL exchange and a literal-free command alike; the log has lines without their CRLF
        guard.pass_on(line.rstrip(b"\r\n") + b"\r\n")


def test_g1_g4_from_mailbox_to_moved_message(dovecot: Dovecot, houses: Houses) -> None:
    receipt = letter("Order 4711 arrived", "Everything arrived: thank you! Grüße")
    uid = dovecot.deliver("Incoming", receipt, ("\\Flagged", "$Label1"), RECEIVED)
    neighbour = dovecot.deliver("Incoming", letter("Where is order 4712?"), (), RECEIVED)
    before = dovecot.snapshot()
    houses.reader.start()

    email_id = _found_and_read(houses)

    # Reading left everything as it was: flags, keywords, INTERNALDATE, \Seen, \Recent, MODSEQ, subscriptions.
    assert before == dovecot.snapshot()
    _judged_by(READER_TABLE, dovecot.commands("reader"))

    houses.executor.start()
    proposal_id = houses.propose(email_id, "processed", "A receipt: nothing is left to do")
    with Person(houses) as person:
        person.sign_in_first_time()
        page = person.can_decide(proposal_id)
        assert "Everything arrived" in page.text
        assert "A receipt: nothing is left to do" in page.text
        assert person.decide(proposal_id, "approve").status_code == 200
        outcome = houses.reaches(proposal_id, "applied")
        assert ("moved", 0) == (outcome["outcome"]["code"], outcome["outcome"]["copiesLeft"])
        assert "person" == outcome["decision"]["by"]

        after = dovecot.snapshot()
        assert [neighbour] == list(after["Incoming"].messages)
        moved, original = after["Processed"].one(), before["Incoming"].messages[uid]
        assert hashlib.sha256(receipt).hexdigest() == moved.sha256
        assert _kept(original) == _kept(moved)

        # The agent sees one updated Email, with the same id, in its new mailbox.
        eventually(lambda: _mailbox_of(houses, email_id) == "Processed", "the reader to see the move")

        # Undo is a person's act, and brings it back as it was.
        assert person.decide(proposal_id, "undo").status_code == 200
        assert "undone" == houses.reaches(proposal_id, "undone")["state"]
    back = dovecot.snapshot()
    assert not back["Processed"].messages
    assert _kept(original) in map(_kept, back["Incoming"].messages.values())

    _judged_by(READER_TABLE, dovecot.commands("reader"))
    _judged_by(MOVE_TABLE, dovecot.commands("executor"))
    assert 0 == houses.executor.stop()
    assert 0 == houses.reader.stop()
    verified = houses.executor.run("audit", "verify")
    assert 0 == verified.returncode, verified.stdout
    # And by the verifier that the documentation prints, of all that a real day puts on record.
    assert verified.stdout == independent(f"sqlite:///{houses.executor.folder / 'journal.db'}").stdout
    reads = houses.reader.said("reads", "--agent", AGENT)
    assert email_id in reads
    assert "Email/get" in reads


def _found_and_read(houses: Houses) -> str:
    """Search and read by one request whose second call refers to the first; the Email id."""
    email_id = houses.found("Order 4711 arrived")
    query, get = houses.jmap(
        ["Email/query", {"accountId": "shop", "filter": {"text": "everything arrived"}}, "a"],
        [
            "Email/get",
            {
                "accountId": "shop",
                "#ids": {"resultOf": "a", "name": "Email/query", "path": "/ids"},
                "properties": ["id", "subject", "from", "preview", "keywords", "receivedAt", "bodyValues", "textBody"],
                "fetchTextBodyValues": True,
            },
            "b",
        ],
    )
    assert [email_id] == query[1]["ids"]
    email = get[1]["list"][0]
    assert {"$flagged": True, "$label1": True} == email["keywords"]
    assert "2026-11-20T09:30:00Z" == email["receivedAt"]
    assert "Grüße" in next(iter(email["bodyValues"].values()))["value"]
    return email_id


def _kept(message: MessageState) -> tuple[object, ...]:
    return message.sha256, message.flags, message.keywords, message.internaldate


def _mailbox_of(houses: Houses, email_id: str) -> str:
    emails, mailboxes = houses.jmap(
        ["Email/get", {"accountId": "shop", "ids": [email_id], "properties": ["mailboxIds"]}, "e"],
        ["Mailbox/get", {"accountId": "shop", "ids": None}, "m"],
    )
    names = {mailbox["id"]: mailbox["name"] for mailbox in mailboxes[1]["list"]}
    (mailbox_id,) = emails[1]["list"][0]["mailboxIds"]
    return str(names[mailbox_id])


def test_a_rejected_or_withdrawn_proposal_moves_nothing(mail: Dovecot, street: Houses) -> None:
    for subject in ("Reject me", "Withdraw me"):
        mail.deliver("Incoming", letter(subject))
    before = mail.snapshot()
    rejected, withdrawn = (street.propose(street.found(subject)) for subject in ("Reject me", "Withdraw me"))
    with Person(street) as person:
        person.come_in()
        assert person.decide(rejected, "reject", reason="She still waits for an answer").status_code == 200
    view = street.reaches(rejected, "rejected")
    assert "She still waits for an answer" == view["decision"]["reason"]
    assert 200 == street.intake("POST", f"/v1/proposals/{withdrawn}/withdraw").status_code
    assert "withdrawn" == street.proposal(withdrawn)["state"]
    assert before == mail.snapshot()


def test_an_invented_id_ends_stale_and_downloads_nothing(mail: Dovecot, street: Houses) -> None:
    mail.deliver("Incoming", letter("Bystander"))
    street.found("Bystander")
    before = _fetches(mail)
    view = street.reaches(street.propose("M" + "0" * 32), "stale")
    assert "message_not_found" == view["outcome"]["code"]
    assert before == _fetches(mail)


def _fetches(mail: Dovecot) -> int:
    return sum(b"FETCH" in line for line in mail.commands("executor"))


def test_a_mail_server_that_is_down_loses_no_proposal(mail: Dovecot, street: Houses) -> None:
    mail.deliver("Incoming", letter("The server sleeps"))
    email_id = street.found("The server sleeps")
    mail.stop()
    proposal_id = street.propose(email_id)
    waiting = eventually(lambda: street.proposal(proposal_id)["waiting"], "the proposal to say why it waits")
    assert "mail_server_unreachable" == waiting["code"]
    # restarted while the mail server is still down, the executor serves and waits
    street.executor.stop()
    street.executor.start()
    assert "pending" == street.proposal(proposal_id)["state"]
    mail.start()
    with Person(street) as person:
        person.come_in()
        person.decide(proposal_id, "approve")
    assert "moved" == street.reaches(proposal_id, "applied")["outcome"]["code"]


def test_a_reader_that_is_down_loses_no_proposal(mail: Dovecot, street: Houses) -> None:
    mail.deliver("Incoming", letter("The reader sleeps"))
    email_id = street.found("The reader sleeps")
    street.reader.stop()
    proposal_id = street.propose(email_id)
    waiting = eventually(lambda: street.proposal(proposal_id)["waiting"], "the proposal to say why it waits")
    assert "reader_unreachable" == waiting["code"]
    street.reader.start()
    with Person(street) as person:
        person.come_in()
        person.decide(proposal_id, "approve")
    assert "moved" == street.reaches(proposal_id, "applied")["outcome"]["code"]


def test_g9_the_stop_button_outlives_a_restart(mail: Dovecot, street: Houses) -> None:
    uid = mail.deliver("Incoming", letter("Halt"))
    proposal_id = street.propose(street.found("Halt"))
    with Person(street) as person:
        person.come_in()
        person.can_decide(proposal_id)
        street.executor.said("stop")
        street.executor.stop()
        street.executor.start()
        stopped = person.can_decide(proposal_id, "reject").text
        assert "It cannot be approved while everything is stopped." in stopped
        assert f"/p/{proposal_id}/approve" not in stopped
        assert uid in mail.snapshot()["Incoming"].messages
        street.executor.said("resume")
        person.decide(proposal_id, "approve")
    assert "moved" == street.reaches(proposal_id, "applied")["outcome"]["code"]
