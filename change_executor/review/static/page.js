// Everything on these pages works without this file. It fills in the code of a link, tells that something changed,
// keeps the ages right and stops a second click. It makes no markup from strings, and moves nothing under the cursor.

const MINUTE = 60_000;

const STOP_WORDS = {
  pressed: "Somebody stopped everything. Nothing is moved until someone resumes.",
  released: "Somebody resumed. What was approved is moved now.",
};

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
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const passed = now - Date.parse(time.dateTime);
    time.textContent = passed < MINUTE ? "just now" : `${span(passed)} ago`;
  }
  for (const time of document.querySelectorAll("time[data-left]")) {
    const remaining = Date.parse(time.dateTime) - now;
    time.textContent = remaining <= 0 ? "time is over" : left(remaining);
  }
}

function stopSecondClicks() {
  for (const form of document.querySelectorAll('form[method="post"]')) {
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
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });
}

function tell(words, href, action) {
  const bar = document.getElementById("live");
  document.getElementById("live-words").textContent = words;
  const link = document.getElementById("live-reload");
  link.setAttribute("href", href);
  link.textContent = action;
  bar.hidden = false;
}

function tellQueue(before, change) {
  const more = change.waiting - before;
  if (more > 0) tell(`${more} new ${more === 1 ? "proposal waits" : "proposals wait"} for you.`, "/", "Show them");
  else if (change.stop) tell(STOP_WORDS[change.stop], "/", "Reload");
  else tell("Something changed.", "/", "Reload");
  document.title = `${change.waiting ? `(${change.waiting}) ` : ""}Queue · Mailwarrant`;
}

function listen() {
  const { live, seq, waiting, proposal } = document.body.dataset;
  if (!live || !document.getElementById("live")) return;
  const before = Number(waiting ?? 0);
  const stream = new EventSource(`/events?since=${seq}`);
  stream.addEventListener("change", (event) => {
    const change = JSON.parse(event.data);
    if (live === "queue") {
      tellQueue(before, change);
    } else if (change.proposals.includes(proposal)) {
      tell("This proposal changed while you look at it.", `/p/${proposal}`, "Show it");
    } else if (change.stop) {
      tell(STOP_WORDS[change.stop], `/p/${proposal}`, "Reload");
    }
  });
  stream.addEventListener("signed-out", () => {
    stream.close();
    tell("You are signed out.", live === "item" ? `/sign-in?next=/p/${proposal}` : "/sign-in", "Sign in");
  });
  addEventListener("pagehide", () => stream.close());
}

fillInLinkCode();
stopSecondClicks();
setInterval(keepAgesRight, MINUTE / 2);
listen();
