"""jmaplib: capability-driven, batches with handles."""

import os

from jmap.auth import BearerAuth
from jmap.client import JMAPClient
from steps import step

client = JMAPClient.connect(f"{os.environ['READER']}/.well-known/jmap", auth=BearerAuth(os.environ["TOKEN"]))


@step("session")
def _() -> None:
    assert "urn:ietf:params:jmap:mail" in client.session.capabilities


@step("mailboxes")
def _() -> None:
    with client.batch() as batch:
        mailboxes = batch.mail.mailbox.get(ids=None)
    assert {"INBOX", "Processed"} == {each.name for each in mailboxes.result.items}


@step("search by reference")
def _() -> None:
    with client.batch() as batch:
        found = batch.mail.email.query(
            filter={"text": "teapot"}, sort=[{"property": "receivedAt", "isAscending": False}], limit=10
        )
        emails = batch.mail.email.get(ids=found.ref_ids(), properties=["subject", "from", "receivedAt"])
    assert ["An order"] == [each.subject for each in emails.result.items]
    assert "person1@example.org" == emails.result.items[0].from_[0].email


@step("reading")
def _() -> None:
    with client.batch() as batch:
        found = batch.mail.email.query(filter={"subject": "receipt"})
        emails = batch.mail.email.get(
            ids=found.ref_ids(), properties=["textBody", "bodyValues"], fetchTextBodyValues=True
        )
    (email,) = emails.result.items
    assert "Grüße aus Köln" in email.body_values[email.text_body[0].part_id].value


@step("Email/changes")
def _() -> None:
    with client.batch() as batch:
        changes = batch.mail.email.changes(since_state=os.environ["SINCE"])
        created = batch.mail.email.get(ids=changes.ref("/created"), properties=["subject"])
    assert not changes.result.destroyed
    assert ["Something new"] == [each.subject for each in created.result.items]


@step("download")
def _() -> None:
    with client.batch() as batch:
        found = batch.mail.email.query(filter={"subject": "receipt"})
        emails = batch.mail.email.get(ids=found.ref_ids(), properties=["blobId"])
    blob = client.download(emails.result.items[0].blob_id, account_id="shop")
    assert b"Subject: Your receipt" in blob


client.close()
