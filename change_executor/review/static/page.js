// Everything on these pages but passkeys works without this file. It fills in the code of a link, asks for passkeys,
// keeps an open list and the ages right, tells that something changed, stops a second click, and takes keys. It makes
// no markup from strings, and moves nothing under the cursor.

const MINUTE = 60_000;
const CHORD_MILLISECONDS = 1_500;
const HINT_MILLISECONDS = 6_000;
const HINT = "mailwarrant-hint";

const STOP_WORDS = {
  pressed: "Somebody stopped everything. Nothing is moved until someone resumes.",
  released: "Somebody resumed. What was approved is moved now.",
};

const page = document.body.dataset;
const find = (selector, within = document) => within.querySelector(selector);
const findAll = (selector, within = document) => [...within.querySelectorAll(selector)];

/* doors */

function fillInLinkCode() {
  const field = document.getElementById("secret");
  if (!field || !document.getElementById("link-form")) return;
  const code = location.hash.slice(1);
  if (!/^[A-Za-z0-9_-]{20,100}$/.test(code)) {
    field.focus();
    return;
  }
  field.value = code;
  // The code must not stay in the address bar or the history.
  history.replaceState(null, "", location.pathname);
  document.getElementById("link-button").focus();
}

function stopSecondClicks() {
  for (const form of findAll('form[method="post"]:not([data-passkey])')) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) {
        event.preventDefault();
        return;
      }
      form.dataset.sent = "yes";
    });
  }
  // A page that comes back from the history can be used again.
  addEventListener("pageshow", () => {
    for (const form of findAll("form[data-sent]")) delete form.dataset.sent;
  });
}

// WebAuthn Level 3: the options and the answer travel as JSON, so that nothing more is needed than to pass them on.
function usePasskeys() {
  if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) return;
  for (const form of findAll("form[data-passkey]")) {
    form.hidden = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const options = JSON.parse(form.dataset.passkey);
      try {
        const credential = options.user
          ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
          : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
        find("[data-credential]", form).value = JSON.stringify(credential.toJSON());
        form.submit();
      } catch {
        find('[role="status"]', form).hidden = false;
      }
    });
  }
}

/* ages */

function span(milliseconds) {
  const minutes = Math.floor(milliseconds / MINUTE);
  if (minutes < 60) return `${Math.max(minutes, 1)} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h`;
  return `${Math.floor(minutes / (24 * 60))} d`;
}

function left(milliseconds) {
  const minutes = Math.ceil(milliseconds / MINUTE);
  if (minutes < 60) return `${minutes} min left`;
  if (minutes < 48 * 60) return `${Math.floor((minutes + 30) / 60)} h left`;
  return `${Math.floor((minutes + 12 * 60) / (24 * 60))} d left`;
}

function keepAgesRight() {
  const now = Date.now();
  for (const time of findAll("time[data-ago]")) {
    const passed = now - Date.parse(time.dateTime);
    time.textContent = passed < MINUTE ? "just now" : `${span(passed)} ago`;
  }
  for (const time of findAll("time[data-left]")) {
    const remaining = Date.parse(time.dateTime) - now;
    time.textContent = remaining <= 0 ? "time is over" : left(remaining);
  }
}

/* what changes while the page is open */

function tell(words, href, action) {
  document.getElementById("live-words").textContent = words;
  const link = document.getElementById("live-reload");
  link.setAttribute("href", href);
  link.textContent = action;
  document.getElementById("live").hidden = false;
}

function showCount(waiting) {
  document.getElementById("icon").setAttribute("href", `/icon/${waiting}`);
  const count = document.getElementById("count");
  if (count) count.textContent = String(waiting);
  if (page.live === "queue") document.title = `${waiting ? `(${waiting}) ` : ""}Queue · Mailwarrant`;
}

function notify(more) {
  if (more <= 0 || page.notify !== "on" || !document.hidden) return;
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  const words = more === 1 ? "A new proposal waits for you." : `${more} new proposals wait for you.`;
  try {
    // One for all open pages; the newest replaces the one before.
    new Notification("Mailwarrant", { body: words, tag: "waiting", icon: "/icon/0" });
  } catch {
    // Some systems show notifications for installed pages only.
  }
}

function fill(row, said) {
  const slot = (name) => find(`[data-slot="${name}"]`, row);
  const link = find(".subject", row);
  link.setAttribute("href", `/p/${said.id}`);
  const words = document.createElement(said.subject ? "bdi" : "span");
  words.textContent = said.subject || (said.subject === null ? "Not looked at yet" : "No subject");
  if (!said.subject) words.className = "none";
  link.replaceChildren(words);
  const sender = document.createElement("bdi");
  sender.textContent = said.sender;
  find(".sender", row).replaceChildren(sender);
  find(".waits", row).textContent = said.waits;
  const texts = {
    from: said.from,
    to: said.to,
    queue: said.queue,
    agent: `agent ${said.agent}`,
    warnings: said.warnings ? `${said.warnings} ${said.warnings === 1 ? "warning" : "warnings"}` : "",
    copies: said.copies > 1 ? `1 of ${said.copies} copies` : "",
    state: said.pending ? "" : said.state,
  };
  for (const [name, text] of Object.entries(texts)) slot(name).textContent = text;
  for (const [time, moment] of [["time[data-ago]", said.created], ["time[data-left]", said.expires]]) {
    const element = find(time, row);
    element.dateTime = moment;
    element.title = `${moment.slice(0, 19).replace("T", " ")} UTC`;
  }
  const box = find("input", row);
  box.value = said.id;
  box.hidden = box.disabled = !said.pending;
  row.dataset.id = said.id;
  row.classList.toggle("gone", !said.pending);
}

function freshRow(said) {
  const row = document.getElementById("row").content.firstElementChild.cloneNode(true);
  fill(row, said);
  return row;
}

// A line that is there already changes in place; a new one goes to the end, unless that would push down what a person
// points at. The rest is told, and shown when asked for.
function showRow(said) {
  const section = document.getElementById("waiting-section");
  const old = find(`[data-id="${said.id}"]`, section ?? document);
  if (old && section && old.closest("#waiting-section")) {
    const row = freshRow(said);
    find("input", row).checked = find("input", old).checked;
    const focused = old.contains(document.activeElement) && (find("input:focus", old) ? "input" : ".subject");
    old.replaceWith(row);
    if (focused) find(focused, row).focus();
    return true;
  }
  if (!said.pending) return true;
  if (!section || section.dataset.appends === undefined || find(".below:hover, .below:focus-within")) return false;
  const list = findAll(".rows", section).at(-1);
  list.append(freshRow(said));
  list.hidden = false;
  document.getElementById("together").hidden = false;
  document.getElementById("empty")?.setAttribute("hidden", "");
  return true;
}

// Whatever grows above it, what a person points at stays where it is.
function steadily(change) {
  const under = findAll(":hover").at(-1);
  const before = under?.getBoundingClientRect().top;
  const result = change();
  if (under?.isConnected) scrollBy(0, under.getBoundingClientRect().top - before);
  return result;
}

async function tellQueue(change) {
  const asked = new URLSearchParams(location.search);
  asked.delete("after");
  asked.delete("done");
  asked.set("ids", change.proposals.join(","));
  let shown = false;
  try {
    const answer = await fetch(`/rows?${asked}`, { headers: { accept: "application/json" } });
    const rows = answer.ok && !answer.redirected ? await answer.json() : null;
    shown = rows !== null && steadily(() => rows.map(showRow).every(Boolean));
  } catch {
    // The page can be read again by hand.
  }
  keepAgesRight();
  if (change.stop) tell(STOP_WORDS[change.stop], location.pathname + location.search, "Reload");
  else if (!shown) tell("Something changed.", location.pathname + location.search, "Show it");
}

function listen() {
  if (!page.live || !document.getElementById("live")) return;
  let waiting = Number(page.waiting);
  let turn = Promise.resolve();
  const stream = new EventSource(`/events?since=${page.seq}`);
  stream.addEventListener("change", (event) => {
    const change = JSON.parse(event.data);
    notify(change.waiting - waiting);
    waiting = change.waiting;
    showCount(waiting);
    if (page.live === "queue") {
      turn = turn.then(() => tellQueue(change));
    } else if (page.proposal && change.proposals.includes(page.proposal)) {
      tell("This proposal changed while you look at it.", `/p/${page.proposal}`, "Show it");
    } else if (change.stop) {
      tell(STOP_WORDS[change.stop], location.pathname, "Reload");
    }
  });
  stream.addEventListener("signed-out", () => {
    stream.close();
    tell("You are signed out.", page.proposal ? `/sign-in?next=/p/${page.proposal}` : "/sign-in", "Sign in");
  });
  addEventListener("pagehide", () => stream.close());
}

/* choosing several */

function countChosen() {
  const words = document.getElementById("chosen");
  if (!words) return;
  const show = () => {
    const chosen = findAll('input[name="p"]:checked').length;
    words.textContent = chosen ? `Decide the ${chosen} selected` : "Decide the selected";
  };
  addEventListener("change", show);
  addEventListener("pageshow", show);
}

/* notifications: the browser asks the person, and only after a click */

function askForNotifications() {
  const form = document.getElementById("notify");
  const button = form && find('button[value="on"]', form);
  if (!button) return;
  button.addEventListener("click", async (event) => {
    event.preventDefault();
    const allowed = "Notification" in window && (await Notification.requestPermission()) === "granted";
    if (allowed) form.requestSubmit(button);
    else document.getElementById("notify-refused").hidden = false;
  }, { once: true });
}

/* keys */

const rowLinks = () => findAll(".row .subject[href]");

function step(by) {
  const links = rowLinks();
  if (!links.length) return;
  const now = links.findIndex((link) => link.closest(".row").contains(document.activeElement));
  const next = links[Math.min(Math.max(now < 0 ? 0 : now + by, 0), links.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

const here = () => document.activeElement?.closest(".row");

// A key brings the cursor to a control and never presses what decides: that takes Enter, on what has the focus.
function goTo(selector, within = document) {
  const control = within && find(selector, within);
  control?.scrollIntoView({ block: "nearest" });
  control?.focus();
  return control;
}

function pick() {
  const box = here() && find('input[name="p"]', here());
  if (box) box.click();
}

function openView(key) {
  const views = findAll(`.views [data-key="${key}"]`);
  const other = views.find((view) => !view.hasAttribute("aria-current"));
  // From the source, the same key leads back to the text.
  (other ?? find('.views [data-key="t"]'))?.click();
}

const open = (path) => location.assign(path);

// In the queue: several that are selected are decided on their own page, one is decided beside its message.
function lookToDecide() {
  if (find('input[name="p"]:checked')) document.getElementById("together").requestSubmit();
  else if (here()) open(`${find(".subject", here()).href}#decide`);
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  x: pick,
  a: () => goTo(".desk button.go, .verdict button.go") ?? lookToDecide(),
  r: () => goTo("#reason") ?? lookToDecide(),
  z: () => goTo('[data-key="z"]', here() ?? undefined) ?? goTo('.notice [data-key="z"], .desk [data-key="z"]'),
  t: () => openView("t"),
  v: () => openView("v"),
  "/": () => goTo("#search"),
  "?": () => document.getElementById("keys")?.showModal(),
  "g q": () => open("/"),
  "g l": () => open("/log"),
  "g a": () => open("/agents"),
  "g s": () => open("/status"),
};

function takeKeys() {
  if (page.keys !== "on") return;
  let began = null;
  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.('input:not([type="checkbox"]), textarea, select, dialog');
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.id === "reason") {
      event.target.form.requestSubmit(find("button.no", event.target.form));
    } else if (event.key === "Escape" && event.target.id === "search") {
      event.target.blur();
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat && !"jk".includes(event.key)) return;
    const key = began !== null && event.timeStamp - began < CHORD_MILLISECONDS ? `g ${event.key}` : event.key;
    began = event.key === "g" && began === null ? event.timeStamp : null;
    if (!Object.hasOwn(KEYS, key)) return;
    event.preventDefault();
    KEYS[key]();
  });
}

// After a click with the mouse, the key for it is shown, on the next page where the click led to one.
function teachKeys() {
  const hint = document.getElementById("hint");
  if (!hint || page.keys !== "on") return;
  const show = (key) => {
    const name = document.createElement("kbd");
    name.textContent = key;
    hint.replaceChildren("The key for that: ", name);
    hint.hidden = false;
    setTimeout(() => { hint.hidden = true; }, HINT_MILLISECONDS);
  };
  const kept = sessionStorage.getItem(HINT);
  sessionStorage.removeItem(HINT);
  if (kept && Object.hasOwn(KEYS, kept)) show(kept);
  addEventListener("click", (event) => {
    const key = event.detail > 0 && event.target.closest?.("[data-key]")?.dataset.key;
    if (!key) return;
    if (event.target.closest("a, button")) sessionStorage.setItem(HINT, key);
    else show(key);
  });
}

fillInLinkCode();
stopSecondClicks();
usePasskeys();
setInterval(keepAgesRight, MINUTE / 2);
countChosen();
askForNotifications();
takeKeys();
teachKeys();
listen();
