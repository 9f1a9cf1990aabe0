// The page around the question: frame height, continuation after a submission, time left.
"use strict";
(() => {
  const frame = document.getElementById("question");
  const form = document.getElementById("continue");

  // Only messages of the question frame are accepted. Its sandboxed origin is "null"; the response to an
  // ExternalQuestion has the site's origin. The server decides whether the answer was submitted.
  window.addEventListener("message", (event) => {
    if (!frame || event.source !== frame.contentWindow) return;
    if (event.origin !== "null" && event.origin !== location.origin) return;
    const { mturk, height } = event.data || {};
    if (mturk === "height" && Number.isFinite(height)) {
      const borders = frame.offsetHeight - frame.clientHeight;
      frame.style.height = `${Math.min(Math.max(height, 200), 30000) + borders}px`;
    } else if (mturk === "submitted" && form) {
      form.requestSubmit();
    }
  });

  const left = document.getElementById("left");
  if (left) countdown(left, document.getElementById("time-notice"));

  function countdown(element, notice) {
    const { deadline, now, minutes, minute, over } = element.dataset;
    const offset = Number(now) * 1000 - Date.now(); // relative to the server's clock
    let lastNotice = "";
    const announce = (text) => {
      if (text === lastNotice) return;
      lastNotice = text;
      notice.textContent = text;
      notice.hidden = false;
    };
    const pad = (number) => String(number).padStart(2, "0");
    const show = () => {
      const seconds = Math.max(0, Math.ceil((Number(deadline) * 1000 - Date.now() - offset) / 1000));
      const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
      element.textContent = h ? `${h}:${pad(m)}:${pad(s)}` : `${m}:${pad(s)}`;
      if (seconds === 0) announce(over);
      else if (seconds <= 60) announce(minute);
      else if (seconds <= 300 && seconds > 240) announce(minutes);
      if (seconds > 0) setTimeout(show, 1000);
    };
    show();
  }

  for (const time of document.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    time.textContent = date.toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
  }
})();
