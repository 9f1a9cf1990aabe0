// Runs in the question frame after a submission: notifies the parent page and links back.
"use strict";
(() => {
  const { site, outcome } = document.currentScript.dataset;
  const { parent } = window;
  if (parent !== window) {
    if (outcome === "done" || outcome === "again") parent.postMessage({ mturk: "submitted" }, site);
    const reportHeight = () => parent.postMessage({ mturk: "height", height: document.body.offsetHeight + 32 }, site);
    new ResizeObserver(reportHeight).observe(document.body);
  }
  const back = document.getElementById("back");
  if (back) {
    back.hidden = false;
    back.addEventListener("click", () => history.back());
  }
  const heading = document.querySelector("h1");
  heading.focus();
  if (parent !== window) parent.postMessage({ mturk: "reveal", top: 0, bottom: heading.offsetHeight }, site);
})();
