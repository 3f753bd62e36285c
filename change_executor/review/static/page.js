// Everything on these pages but passkeys works without this file. It fills in the code of a link, asks for passkeys, keeps
// lists and ages right, tells what changed, waits for an executor that is away, stops a second click, and takes keys. It
// makes no markup from strings, and moves nothing under the cursor.

const MINUTE = 60_000;
const CHORD_MILLISECONDS = 1_500;
const HINT_MILLISECONDS = 6_000;
const PATIENCE_MILLISECONDS = 2_000;
const HINT = "mailwarrant-hint";

const STOP_WORDS = {
  pressed: "Somebody stopped everything. Nothing is moved until someone resumes.",
  released: "Somebody resumed. What was approved is moved now.",
};

const AWAY_WORDS = "The executor does not answer. This page stays as it is, and what you press is done as soon as it does.";

const page = document.body.dataset;
const find = (selector, within = document) => within.querySelector(selector);
const findAll = (selector, within = document) => [...within.querySelectorAll(selector)];

/* doors */

function fillInLinkCode() {
  const field = document.getElementById("secret");
  if (!field || !document.getElementById("link-form")) return;
  const code = location.hash.slice(1);
  if (!/^[A-Za-z0-9_-]{20,100}$/.test(code)) return field.focus();
  field.value = code;
  // The code must not stay in the address bar or the history.
  history.replaceState(null, "", location.pathname);
  document.getElementById("link-button").focus();
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

// `nearest` is 1 for what is left, so that five days that have begun a second ago are five; `wording.py` counts alike.
function span(minutes, nearest) {
  if (minutes < 60) return `${Math.max(minutes, 1)} min`;
  if (minutes < 48 * 60) return `${Math.floor((minutes + 30 * nearest) / 60)} h`;
  return `${Math.floor((minutes + 12 * 60 * nearest) / (24 * 60))} d`;
}

function keepAgesRight() {
  const now = Date.now();
  for (const time of findAll("time[data-ago]")) {
    const passed = now - Date.parse(time.dateTime);
    time.textContent = passed < MINUTE ? "just now" : `${span(Math.floor(passed / MINUTE), 0)} ago`;
  }
  for (const time of findAll("time[data-left]")) {
    const remaining = Date.parse(time.dateTime) - now;
    time.textContent = remaining <= 0 ? "time is over" : `${span(Math.ceil(remaining / MINUTE), 1)} left`;
  }
}

/* the executor is away for a moment, in a restart: what is shown and typed stays, and what was pressed goes on after it */

let [away, looking, wanted] = [false, false, null];

const answers = () =>
  fetch("/icon/0", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MILLISECONDS) })
    .then((answer) => answer.ok, () => false);

// What was pressed last is what is wanted.
async function goOnWhenItAnswers(go = wanted) {
  wanted = go;
  if (looking) return;
  looking = true;
  while (!(await answers())) {
    away = true;
    tell(AWAY_WORDS);
    await new Promise((again) => setTimeout(again, PATIENCE_MILLISECONDS));
  }
  looking = away = false;
  if (find("#live-words")?.textContent === AWAY_WORDS) find("#live").hidden = true;
  wanted?.();
  wanted = null;
}

const open = (path) => (away ? goOnWhenItAnswers(() => location.assign(path)) : location.assign(path));

// A form is sent once, however often it is pressed, and only to somebody who is there.
function sendOnce() {
  addEventListener("submit", (event) => {
    const form = event.target;
    if (event.submitter?.value === "nothing") event.preventDefault();
    if (event.defaultPrevented || form.method === "dialog") return;
    if (form.dataset.sent || away) event.preventDefault();
    else if (form.method === "post") form.dataset.sent = "yes";
    if (away) goOnWhenItAnswers(() => form.requestSubmit(event.submitter));
  });
  addEventListener("click", (event) => {
    const link = away && !event.ctrlKey && !event.metaKey && event.target.closest?.("a[href^='/']:not([download])");
    if (!link) return;
    event.preventDefault();
    open(link.href);
  });
  // A page that comes back from the history can be used again.
  addEventListener("pageshow", () => {
    for (const form of findAll("form[data-sent]")) delete form.dataset.sent;
  });
}

/* what changes while the page is open */

function tell(words, href = "", action = "") {
  const [live, link] = [find("#live"), find("#live-reload")];
  if (!live) return;
  find("#live-words").textContent = words;
  link.setAttribute("href", href);
  link.textContent = action;
  link.hidden = !action;
  live.hidden = false;
}

function showCount(waiting) {
  document.getElementById("icon").setAttribute("href", `/icon/${waiting}`);
  document.getElementById("count")?.replaceChildren(String(waiting));
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

function offerUndo(form, { undo }) {
  form.hidden = !undo;
  if (undo) form.setAttribute("action", undo.action);
  for (const [name, value] of Object.entries(undo?.fields ?? {})) find(`[name="${name}"]`, form).value = value;
}

function freshRow(said) {
  const row = document.getElementById("row").content.firstElementChild.cloneNode(true);
  find(".subject", row).setAttribute("href", said.path);
  for (const [name, text] of Object.entries(said.texts)) find(`[data-slot="${name}"]`, row).textContent = text;
  for (const [name, [dateTime, title]] of Object.entries(said.times)) {
    Object.assign(find(`time[data-${name}]`, row), { dateTime, title });
  }
  if (said.tone) find('[data-slot="state"]', row).classList.add(said.tone);
  const box = find("input", row);
  box.value = row.dataset.id = said.id;
  box.hidden = box.disabled = find(".left", row).hidden = !said.pending;
  row.classList.toggle("alarm", said.tone === "alarm");
  row.toggleAttribute("data-over", said.over);
  offerUndo(find(".undo", row), said);
  return row;
}

// A line that is there already changes in place; a new one goes to the end, unless that would push down what a person
// points at. The rest is told, and shown when asked for.
function showRow(said) {
  const section = document.getElementById("waiting-section");
  const old = find(`.row[data-id="${said.id}"]`);
  if (old) {
    const row = freshRow(said);
    if (find(".pick", old)) row.classList.toggle("gone", !said.pending);
    else find(".pick", row).remove();
    if (find("input:checked", old)) find("input", row).checked = true;
    const focused = old.contains(document.activeElement) && (find(".pick input:focus", old) ? "input" : ".subject");
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

// What the page says of the decisions that led here goes on with what becomes of them.
function showWhatBecame(rows) {
  for (const said of rows) {
    const place = find(`[data-done="${said.id}"]`);
    if (!place) continue;
    const state = find(".state", place);
    find("[data-words]", place)?.replaceChildren(said.done);
    if (state) Object.assign(state, { textContent: said.texts.state || said.done, className: `state ${said.tone}` });
    offerUndo(find(".undo", place), said);
  }
  const count = document.getElementById("under-way-count");
  if (!count) return;
  count.textContent = findAll(".row:not([data-over])", count.closest("section")).length || "";
  if (!count.textContent) count.previousElementSibling.textContent = count.previousElementSibling.dataset.whenOver;
}

// Whatever grows above it, what a person points at stays where it is.
function steadily(change) {
  const under = findAll(":hover").at(-1);
  const before = under?.getBoundingClientRect().top;
  const result = change();
  if (under?.isConnected) scrollBy(0, under.getBoundingClientRect().top - before);
  return result;
}

// In the queue all of it; beside a message only what becomes of the decision that led there.
async function tellLines(change) {
  const asked = new URLSearchParams(location.search);
  asked.delete("after");
  asked.delete("done");
  asked.set("ids", change.proposals.join(","));
  // Where they do not come, the page can be read again by hand.
  const rows = await fetch(`/rows?${asked}`, { headers: { accept: "application/json" } })
    .then((answer) => (answer.ok && !answer.redirected ? answer.json() : null))
    .catch(() => null);
  const shown = page.live !== "queue" || (rows !== null && steadily(() => rows.map(showRow).every(Boolean)));
  showWhatBecame(rows ?? []);
  keepAgesRight();
  if (page.live !== "queue") return;
  if (change.stop) tell(STOP_WORDS[change.stop], location.pathname + location.search, "Reload");
  else if (!shown) tell("Something changed.", location.pathname + location.search, "Show it");
}

function listen() {
  if (!page.live || !find("#live")) return;
  let waiting = Number(page.waiting);
  let turn = Promise.resolve();
  const stream = new EventSource(`/events?since=${page.seq}`);
  stream.addEventListener("change", (event) => {
    page.seq = event.lastEventId;
    const change = JSON.parse(event.data);
    notify(change.waiting - waiting);
    waiting = change.waiting;
    showCount(waiting);
    if (page.live === "queue" || find("[data-done]")) turn = turn.then(() => tellLines(change));
    if (page.live === "queue") return;
    if (page.proposal && change.proposals.includes(page.proposal)) {
      tell("This proposal changed while you look at it.", `/p/${page.proposal}`, "Show it");
    } else if (change.stop) tell(STOP_WORDS[change.stop], location.pathname, "Reload");
  });
  stream.addEventListener("signed-out", () => {
    stream.close();
    tell("You are signed out.", page.proposal ? `/sign-in?next=/p/${page.proposal}` : "/sign-in", "Sign in");
  });
  stream.addEventListener("error", () => {
    away = true;
    goOnWhenItAnswers();
    // A stream that was refused, as by an executor that ends, is not taken up again by the browser.
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, PATIENCE_MILLISECONDS);
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
  const button = find('#notify button[value="on"]');
  button?.addEventListener("click", async (event) => {
    event.preventDefault();
    const allowed = "Notification" in window && (await Notification.requestPermission()) === "granted";
    if (allowed) button.form.requestSubmit(button);
    else document.getElementById("notify-refused").hidden = false;
  }, { once: true });
}

/* keys */

function step(by) {
  const links = findAll(".row .subject[href]");
  const now = links.findIndex((link) => link.closest(".row").contains(document.activeElement));
  const next = links[Math.min(Math.max(now < 0 ? 0 : now + by, 0), links.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

const here = () => document.activeElement?.closest(".row");

// A key brings the cursor to a control and never presses what decides: that takes Enter, on what has the focus.
function goTo(selector, within = document) {
  const control = within && find(selector, within);
  control?.scrollIntoView({ block: "nearest" });
  control?.focus();
  return control;
}

function openView(key) {
  const views = findAll(`.views [data-key="${key}"]`);
  const other = views.find((view) => !view.hasAttribute("aria-current"));
  // From the source, the same key leads back to the text.
  (other ?? find('.views [data-key="t"]'))?.click();
}

// In the queue: several that are selected are decided on their own page, one is decided beside its message.
function lookToDecide() {
  if (find('input[name="p"]:checked')) document.getElementById("together").requestSubmit();
  else if (here()) open(`${find(".subject", here()).href}#decide`);
}

const UNDO = 'form:not([hidden]) [data-key="z"]';
const KEYS = {
  j: () => (find('.back [data-key="j"]') ?? { click: () => step(1) }).click(),
  k: () => step(-1),
  x: () => here() && find('input[name="p"]', here())?.click(),
  a: () => goTo(".desk button.go, .verdict button.go") ?? lookToDecide(),
  r: () => goTo("#reason") ?? lookToDecide(),
  z: () => goTo(UNDO, here() ?? null) ?? goTo(`.notice ${UNDO}, .desk ${UNDO}`),
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
    if (event.key === "Enter" && event.target.id === "reason" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      if (!event.repeat) event.target.form.requestSubmit(find("button.no", event.target.form));
    } else if (event.key === "Escape" && event.target.id === "search") {
      event.target.blur();
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.repeat && (page.live !== "queue" || !"jk".includes(event.key))) return;
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
    find("kbd", hint).textContent = key;
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
sendOnce();
usePasskeys();
setInterval(keepAgesRight, MINUTE / 2);
countChosen();
askForNotifications();
takeKeys();
teachKeys();
listen();
