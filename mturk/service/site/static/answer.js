// Inside the question frame, after the form was sent: tell the page around it, and lead back.
"use strict";
(() => {
  const { site, outcome } = document.currentScript.dataset;
  const { parent } = window;
  if (parent !== window) {
    if (outcome === "done" || outcome === "again") parent.postMessage({ mturk: "submitted" }, site);
    const tell = () => parent.postMessage({ mturk: "height", height: document.body.offsetHeight + 32 }, site);
    new ResizeObserver(tell).observe(document.body);
  }
  const back = document.getElementById("back");
  if (back) {
    back.hidden = false;
    back.addEventListener("click", () => history.back());
  }
  document.querySelector("h1").focus();
})();
