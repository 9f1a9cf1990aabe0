"use strict";
// Block the submission until all images of the questions are loaded. Runs before the listeners of the form.
(function () {
  const form = document.getElementById("answers");
  const problem = document.getElementById("problem-images");
  const missing = new Set(form.querySelectorAll("img"));
  const failed = new Set();

  missing.forEach(function (image) {
    image.addEventListener("load", function () { missing.delete(image); failed.delete(image); report(failed.size); });
    image.addEventListener("error", function () { failed.add(image); report(failed.size); });
    reload(image); // an event before this script is repeated
  });
  form.addEventListener("submit", function (event) {
    if (!missing.size) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    report(true);
    failed.forEach(reload);
  }, true);

  function reload(image) { image.src = image.getAttribute("src"); }

  function report(fails) { problem.textContent = fails ? form.dataset.noImage : ""; }
})();
