// Pages of the site: drafts and local times; around a question also its height, submission and time left.
"use strict";
(() => {
  const frame = document.getElementById("question");
  const form = document.getElementById("continue");
  const { worker, now } = document.body.dataset;
  const offset = Number(now) * 1000 - Date.now(); // the clock of the device can be wrong
  const serverNow = () => (Date.now() + offset) / 1000;

  // Drafts are in the browser's storage until the submission, a day after the deadline, or signing out. They
  // belong to the HIT, so that a worker who accepts it again finds them.
  const DRAFT = "mturk-draft:";
  const MAX_DRAFT_CHARACTERS = 500000;
  const DRAFT_SECONDS = 86400;
  const assignment = form && form.elements.assignment.value;
  const hit = form && form.dataset.hit;
  let isLeaving = false;

  function forgetDrafts(isForgotten) {
    try {
      for (const key of Object.keys(localStorage).filter((name) => name.startsWith(DRAFT))) {
        if (isForgotten(key.slice(DRAFT.length), JSON.parse(localStorage.getItem(key)))) localStorage.removeItem(key);
      }
    } catch (error) { /* no storage in this browser */ }
  }

  function saveDraft(fields) {
    if (isLeaving) return; // forgotten, and the frame reports its last change only now
    try {
      const draft = JSON.stringify({ worker, assignment, deadline: Number(left.dataset.deadline), fields });
      if (draft.length <= MAX_DRAFT_CHARACTERS) localStorage.setItem(DRAFT + hit, draft);
    } catch (error) { /* no storage in this browser, or it is full */ }
  }

  function loadDraft() {
    try {
      return JSON.parse(localStorage.getItem(DRAFT + hit));
    } catch (error) {
      return null;
    }
  }

  const isOld = (draft) => draft.deadline + DRAFT_SECONDS < serverNow();
  forgetDrafts((_, draft) => isOld(draft) || (worker && draft.worker !== worker));
  document.addEventListener("submit", ({ target }) => {
    if (!target.dataset.forget) return;
    isLeaving = true;
    forgetDrafts((id) => target.dataset.forget === "all" || id === hit);
  });

  // Only messages of the question frame are accepted. Its sandboxed origin is "null"; the response to an
  // ExternalQuestion has the site's origin. The server decides whether the answer was submitted.
  window.addEventListener("message", (event) => {
    if (!frame || event.source !== frame.contentWindow) return;
    if (event.origin !== "null" && event.origin !== location.origin) return;
    const { mturk, height, fields, top, bottom } = event.data || {};
    if (mturk === "height" && Number.isFinite(height)) {
      const borders = frame.offsetHeight - frame.clientHeight;
      frame.style.height = `${Math.min(Math.max(height, 200), 30000) + borders}px`;
    } else if (mturk === "reveal" && Number.isFinite(top) && Number.isFinite(bottom)) {
      reveal(top, bottom);
    } else if (!form || !form.isConnected) {
      return; // a preview
    } else if (mturk === "ready") {
      const draft = loadDraft();
      // another assignment of the HIT has its own hidden fields, for example the order of the options
      if (draft) reply({ mturk: "draft", fields: draft.fields, hidden: draft.assignment === assignment });
    } else if (mturk === "draft") {
      saveDraft(fields);
    } else if (mturk === "submit") {
      submit(fields);
    } else if (mturk === "submitted") {
      proceed();
    }
  });

  function reply(message) {
    frame.contentWindow.postMessage(message, "*"); // the sandboxed frame has no origin that could be named
  }

  // Scroll to a part of the question unless it is visible.
  function reveal(top, bottom) {
    const offset = frame.getBoundingClientRect().top;
    if (offset + top >= 0 && offset + bottom <= innerHeight) return;
    scrollBy({ top: offset + top - innerHeight / 3 });
  }

  function proceed() {
    isLeaving = true;
    forgetDrafts((id) => id === hit);
    form.requestSubmit();
  }

  // Send the answer until the service has received or refused it. A repeated answer is stored once.
  let unsent = null;
  let retry = () => {};
  async function submit(fields) {
    const address = new URL(new URL(frame.src).searchParams.get("turkSubmitTo") + "/mturk/externalSubmit");
    if (address.origin !== location.origin || !Array.isArray(fields)) return; // the frame submits the form
    reply({ mturk: "sending" });
    const isSending = unsent !== null;
    unsent = fields;
    if (isSending) {
      retry();
      return;
    }
    const status = document.getElementById("sending");
    const button = status.querySelector("button");
    const announce = (key) => {
      status.hidden = false;
      button.hidden = key === "now";
      const text = status.querySelector("p");
      if (text.textContent !== status.dataset[key]) text.textContent = status.dataset[key];
    };
    button.addEventListener("click", () => retry());
    window.addEventListener("online", () => retry());
    announce("now");
    for (let seconds = 1; ; seconds = Math.min(2 * seconds, 30)) {
      const response = await post(address);
      if (response && response.ok) {
        proceed();
        return;
      }
      if (response && response.status < 500 && response.status !== 429) {
        status.hidden = true;
        unsent = null;
        reply({ mturk: "refused" }); // the form is submitted in the frame, which shows the reason
        return;
      }
      announce(response ? "busy" : "offline");
      const wait = Math.max(seconds, Number(response && response.headers.get("Retry-After")) || 0);
      await new Promise((resolve) => {
        retry = resolve;
        setTimeout(resolve, wait * 1000);
      });
    }
  }

  async function post(address) {
    try {
      return await fetch(address, {
        method: "POST", body: new URLSearchParams(unsent), credentials: "omit", signal: AbortSignal.timeout(60000),
      });
    } catch (error) {
      return null; // no connection
    }
  }

  const left = document.getElementById("left");
  if (left) countdown(left, document.getElementById("time-notice"));

  function countdown(element, notice) {
    const { deadline, grace, graceNotice, minutes, minute, over } = element.dataset;
    let lastNotice = "";
    const announce = (text) => {
      if (text === lastNotice) return;
      lastNotice = text;
      notice.textContent = text;
      notice.hidden = false;
    };
    const pad = (number) => String(number).padStart(2, "0");
    const show = () => {
      const remaining = Number(deadline) - serverNow();
      const seconds = Math.max(0, Math.ceil(remaining));
      const isOver = remaining + Number(grace) <= 0;
      const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
      element.textContent = h ? `${h}:${pad(m)}:${pad(s)}` : `${m}:${pad(s)}`;
      if (isOver) announce(over);
      else if (seconds === 0) announce(graceNotice);
      else if (seconds <= 60) announce(minute);
      else if (seconds <= 300 && seconds > 240) announce(minutes);
      if (!isOver) setTimeout(show, 1000);
    };
    show();
  }

  for (const time of document.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    time.textContent = date.toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
  }
})();
