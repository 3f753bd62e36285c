"""jmapc: typed methods, `Ref` for what one call takes from the one before."""

import functools
import os

import requests
from jmapc import Client, Comparator, EmailQueryFilterCondition, Ref
from jmapc.methods import EmailChanges, EmailGet, EmailQuery, MailboxGet
from jmapc.session import Session
from steps import step


class PlainClient(Client):
    @functools.cached_property
    def jmap_session(self) -> Session:
        answer = self.requests_session.get(f"http://{self._host}/.well-known/jmap", timeout=30)
        answer.raise_for_status()
        return Session.from_dict(answer.json())


host = os.environ["READER"].removeprefix("http://")
client = PlainClient.create_with_api_token(host, os.environ["TOKEN"])


@step("session", "its own address is https alone; this step asks by http, and it reads the answer itself")
def _() -> None:
    assert "shop" == client.account_id
    assert client.jmap_session.event_source_url.startswith("http://")


@step("mailboxes")
def _() -> None:
    answer = client.request(MailboxGet(ids=None))
    assert {"INBOX", "Processed"} == {mailbox.name for mailbox in answer.data}


@step("search by reference")
def _() -> None:
    query, got = client.request(
        [
            EmailQuery(
                filter=EmailQueryFilterCondition(text="teapot"),
                sort=[Comparator(property="receivedAt", is_ascending=False)],
                limit=5,
            ),
            EmailGet(ids=Ref("/ids")),
        ],
        raise_errors=True,
    )
    assert query.response.ids == [each.id for each in got.response.data]
    assert ["An order"] == [each.subject for each in got.response.data]


@step("reading")
def _() -> None:
    query = client.request(EmailQuery(filter=EmailQueryFilterCondition(text="receipt")))
    (email,) = client.request(EmailGet(ids=query.ids, fetch_text_body_values=True)).data
    (part,) = email.text_body
    assert "Grüße aus Köln" in email.body_values[part.part_id].value


@step("Email/changes")
def _() -> None:
    changes = client.request(EmailChanges(since_state=os.environ["SINCE"]))
    (email,) = client.request(EmailGet(ids=changes.created)).data
    assert ("Something new", [], []) == (email.subject, changes.updated, changes.destroyed)


@step("download")
def _() -> None:
    query = client.request(EmailQuery(filter=EmailQueryFilterCondition(text="receipt")))
    (email,) = client.request(EmailGet(ids=query.ids, properties=["blobId"])).data
    url = client.jmap_session.download_url.format(
        accountId=client.account_id, blobId=email.blob_id, name="a.eml", type="message/rfc822"
    )
    answer: requests.Response = client.requests_session.get(url, timeout=30)
    assert b"Subject: Your receipt" in answer.content
