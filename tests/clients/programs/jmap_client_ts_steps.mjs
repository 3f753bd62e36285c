// jmap-client-ts: one method per request, by a transport that it is given; it names every capability of the session.
import assert from "node:assert/strict";
import library from "jmap-client-ts";
import transports from "jmap-client-ts/lib/utils/fetch-transport.js";
import { step } from "./steps.mjs";

const client = new library.Client({
  sessionUrl: `${process.env.READER}/.well-known/jmap`,
  accessToken: process.env.TOKEN,
  // Its fetch transport sends text/plain otherwise, which RFC 8620 §3.6.1 has refused as notJSON.
  httpHeaders: { "Content-Type": "application/json" },
  transport: new transports.FetchTransport(fetch),
});

await step("session", async () => {
  await client.fetchSession();
  assert.equal(client.getFirstAccountId(), process.env.FIRST_ACCOUNT);
}, "is given the Content-Type `application/json` by its `httpHeaders`; of itself it sends text/plain, which RFC 8620 §3.6.1 refuses");
await step("mailboxes", async () => {
  const answer = await client.mailbox_get({ accountId: "shop", ids: null });
  assert.deepEqual(answer.list.map((each) => each.name).sort(), ["INBOX", "Processed"]);
});
await step("search by reference", async () => {
  const found = await client.email_query({ accountId: "shop", filter: { text: "teapot" } });
  const got = await client.email_get({ accountId: "shop", ids: found.ids, properties: ["subject"] });
  assert.deepEqual(got.list.map((each) => each.subject), ["An order"]);
}, "sends one call in a request, so the ids go through the client");
await step("reading", async () => {
  const { ids } = await client.email_query({ accountId: "shop", filter: { subject: "receipt" } });
  const properties = ["textBody", "bodyValues"];
  const { list } = await client.email_get({ accountId: "shop", ids, properties, fetchTextBodyValues: true });
  assert.match(list[0].bodyValues[list[0].textBody[0].partId].value, /Grüße aus Köln/);
});
await step("Email/changes", async () => {
  const changes = await client.email_changes({ accountId: "shop", sinceState: process.env.SINCE });
  assert.equal(changes.created.length, 1);
});
