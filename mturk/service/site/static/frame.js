// Runs before a question's own scripts: emulates Mechanical Turk's frame for requesters' pages.
"use strict";
(() => {
  const { assignment, submitTo, site, hint } = document.currentScript.dataset;
  const preview = assignment === "ASSIGNMENT_ID_NOT_AVAILABLE";
  const target = `${submitTo}/mturk/externalSubmit`;

  // The functions of externalHIT_v1.js, whose original address cannot be loaded here.
  window.turkGetParam = (name, otherwise) => {
    const value = new URLSearchParams(location.search).get(name);
    return value === null ? (otherwise === undefined ? "" : otherwise) : value;
  };
  window.turkGetSubmitToHost = () => submitTo;
  window.turkSetAssignmentID = (formId, id) => {
    const form = document.getElementById(formId || "mturk_form");
    if (!form) return;
    field(form, id || assignment);
    form.action = target;
    if (preview) switchOff(form);
  };

  const send = HTMLFormElement.prototype.submit;
  const actionOf = (form) => HTMLFormElement.prototype.getAttribute.call(form, "action") || "";
  const isAnswer = (form) => {
    const action = actionOf(form).trim();
    return action === "" || /\/externalSubmit\/?([?#].*)?$/.test(action);
  };

  function field(form, value) {
    let input = form.querySelector('[name="assignmentId"]');
    if (!input) {
      input = document.createElement("input");
      input.type = "hidden";
      input.name = "assignmentId";
      form.append(input);
    }
    input.value = value;
  }

  function prepare(form) {
    if (!isAnswer(form)) return;
    field(form, assignment);
    form.setAttribute("action", target);
    form.setAttribute("method", "post");
    for (const button of form.querySelectorAll("[formaction]")) button.removeAttribute("formaction");
  }

  function switchOff(form) {
    const kinds = 'button:not([type]), button[type="submit"], input[type="submit"], input[type="image"]';
    for (const button of form.querySelectorAll(kinds)) {
      button.disabled = true;
      button.title = hint;
    }
  }

  function onSubmit(event) {
    if (preview) {
      event.preventDefault();
      event.stopImmediatePropagation();
    } else {
      prepare(event.target);
    }
  }

  window.addEventListener("submit", onSubmit, true); // before the page's listeners
  window.addEventListener("submit", onSubmit); // and after them, since they may set the action
  HTMLFormElement.prototype.submit = function submit() {
    if (preview) return;
    prepare(this);
    send.call(this);
  };

  function ready() {
    for (const form of document.forms) {
      prepare(form);
      if (preview) switchOff(form);
    }
  }
  document.addEventListener("DOMContentLoaded", ready);
  window.addEventListener("load", ready);

  // The frame grows with the page; the number of changes is limited, for pages as high as their window.
  let reported = 0;
  let changes = 0;
  function reportHeight() {
    const box = document.documentElement.getBoundingClientRect();
    const height = Math.ceil(box.height);
    if (height === reported || changes > 200) return;
    reported = height;
    changes += 1;
    window.parent.postMessage({ mturk: "height", height }, site);
  }
  document.addEventListener("DOMContentLoaded", () => {
    new ResizeObserver(reportHeight).observe(document.documentElement);
    reportHeight();
  });
})();
