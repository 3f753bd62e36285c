// jmap-jam: the Fetch API, `$ref` for what one call takes from the one before.
import assert from "node:assert/strict";
import JamClient from "jmap-jam";
import { step } from "./steps.mjs";

const jam = new JamClient({ sessionUrl: `${process.env.READER}/.well-known/jmap`, bearerToken: process.env.TOKEN });
const accountId = "shop";

await step("session", async () => {
  assert.equal(await jam.getPrimaryAccount(), accountId);
});
await step("mailboxes", async () => {
  const [answer] = await jam.api.Mailbox.get({ accountId });
  assert.deepEqual(answer.list.map((each) => each.name).sort(), ["INBOX", "Processed"]);
});
await step("search by reference", async () => {
  const [{ emails }] = await jam.requestMany((t) => {
    const ids = t.Email.query({ accountId, filter: { text: "teapot" }, limit: 5 });
    return { ids, emails: t.Email.get({ accountId, ids: ids.$ref("/ids"), properties: ["subject"] }) };
  });
  assert.deepEqual(emails.list.map((each) => each.subject), ["An order"]);
});
await step("reading", async () => {
  const [{ emails }] = await jam.requestMany((t) => {
    const ids = t.Email.query({ accountId, filter: { subject: "receipt" } });
    const properties = ["textBody", "bodyValues", "blobId"];
    return { ids, emails: t.Email.get({ accountId, ids: ids.$ref("/ids"), properties, fetchTextBodyValues: true }) };
  });
  const [email] = emails.list;
  assert.match(email.bodyValues[email.textBody[0].partId].value, /Grüße aus Köln/);
  globalThis.blobId = email.blobId;
});
await step("Email/changes", async () => {
  const [changes] = await jam.api.Email.changes({ accountId, sinceState: process.env.SINCE });
  const [got] = await jam.api.Email.get({ accountId, ids: changes.created, properties: ["subject"] });
  assert.deepEqual(got.list.map((each) => each.subject), ["Something new"]);
});
await step("download", async () => {
  const { blobId } = globalThis;
  const answer = await jam.downloadBlob({ accountId, blobId, mimeType: "message/rfc822", fileName: "a.eml" });
  assert.match(await answer.text(), /Subject: Your receipt/);
});
