// The page around the question: its height, what happens after submitting, the time that is left.
"use strict";
(() => {
  const frame = document.getElementById("question");
  const form = document.getElementById("continue");

  // Only the question's frame is heard. Sandboxed, its origin reads "null"; the site's own answer to an
  // ExternalQuestion has the site's. Whether the answer is in is for the server to say, not for a message.
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

  function countdown(place, notice) {
    const { deadline, now, minutes, minute, over } = place.dataset;
    const offset = Number(now) * 1000 - Date.now(); // the server's clock counts
    let said = "";
    const say = (words) => {
      if (words === said) return;
      said = words;
      notice.textContent = words;
      notice.hidden = false;
    };
    const two = (number) => String(number).padStart(2, "0");
    const show = () => {
      const seconds = Math.max(0, Math.ceil((Number(deadline) * 1000 - Date.now() - offset) / 1000));
      const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
      place.textContent = h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
      if (seconds === 0) say(over);
      else if (seconds <= 60) say(minute);
      else if (seconds <= 300 && seconds > 240) say(minutes);
      if (seconds > 0) setTimeout(show, 1000);
    };
    show();
  }

  for (const time of document.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    time.textContent = date.toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
  }
})();
