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

  function onSubmit(event) { // before the page's listeners
    if (preview) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    prepare(event.target);
    window.removeEventListener("submit", onLast);
    window.addEventListener("submit", onLast); // at the end of the listeners, which may set the action
  }

  function onLast(event) {
    if (event.defaultPrevented) return;
    prepare(event.target);
    if (deliver(event.target, event.submitter)) event.preventDefault();
  }

  window.addEventListener("submit", onSubmit, true);
  HTMLFormElement.prototype.submit = function submit() {
    if (preview) return;
    prepare(this);
    if (!deliver(this, null)) send.call(this);
  };

  // The page around the frame sends the answer, since it can repeat this without losing the question. If it
  // does not reply, or the service refuses the answer, the form is submitted in the frame.
  let undelivered = null;
  let acknowledgement = 0;
  function deliver(form, submitter) {
    if (window.parent === window || !isAnswer(form) || form.querySelector('input[type="file"]')) return false;
    if (saving) save(); // after a refusal, the draft restores what was typed last
    undelivered = { form, submitter };
    clearTimeout(acknowledgement);
    acknowledgement = setTimeout(submitInFrame, 2000);
    tell({ mturk: "submit", fields: fieldsOf(form, submitter) });
    return true;
  }

  function submitInFrame() {
    if (!undelivered) return;
    const { form, submitter } = undelivered;
    undelivered = null;
    if (submitter && submitter.name) {
      form.append(Object.assign(document.createElement("input"), {
        type: "hidden", name: submitter.name, value: submitter.value,
      }));
    }
    send.call(form);
  }

  function fieldsOf(form, submitter) {
    const lines = (text) => text.replace(/\r\n|\r|\n/g, "\r\n"); // as in a form submission
    return Array.from(new FormData(form, submitter), ([name, value]) => [lines(name), lines(value)]);
  }

  function tell(message) {
    window.parent.postMessage(message, site);
  }

  // Drafts are stored by the page around the frame; passwords and files are not part of them.
  let changed = false;
  let saving = 0;
  const answerForm = () => Array.from(document.forms).find(isAnswer);
  const isStored = (field) => field.name && field.name !== "assignmentId" && !["password", "file"].includes(field.type);

  function save() {
    clearTimeout(saving);
    saving = 0;
    const form = answerForm();
    if (!form || undelivered) return;
    const stored = new Set(Array.from(form.elements).filter(isStored).map((field) => field.name));
    const fields = Array.from(new FormData(form)).filter(([name]) => stored.has(name));
    tell({ mturk: "draft", fields });
  }

  function restore(fields, hidden) {
    const form = answerForm();
    if (changed || !form) return;
    const values = new Map();
    for (const [name, value] of fields) values.set(name, [...(values.get(name) || []), value]);
    const restored = Array.from(form.elements).filter((field) => isStored(field)
      && (hidden || field.type !== "hidden") && setField(field, values));
    for (const field of restored) {
      for (const type of ["input", "change"]) field.dispatchEvent(new Event(type, { bubbles: true }));
    }
  }

  // Set a field to its value in a draft; return whether the worker would have changed it.
  function setField(field, values) {
    const own = values.get(field.name) || [];
    if (field.type === "checkbox" || field.type === "radio") {
      const checked = own.includes(field.value);
      if (field.checked === checked) return false;
      field.checked = checked;
      return checked || field.type === "checkbox";
    }
    if (field.type === "select-multiple") {
      for (const option of field.options) option.selected = own.includes(option.value);
      return true;
    }
    const value = own.shift();
    if (value === undefined || field.value === value) return false;
    field.value = value;
    return field.type !== "hidden";
  }

  if (!preview && window.parent !== window) {
    for (const type of ["input", "change"]) {
      window.addEventListener(type, (event) => {
        changed = changed || event.isTrusted;
        if (!saving) saving = setTimeout(save, 200);
      });
    }
    window.addEventListener("pagehide", () => { if (saving) save(); });
    window.addEventListener("load", () => tell({ mturk: "ready" }));
    window.addEventListener("message", ({ source, origin, data }) => {
      if (source !== window.parent || origin !== site) return;
      const { mturk, fields, hidden } = data || {};
      if (mturk === "draft") restore(fields, hidden);
      if (mturk === "sending") clearTimeout(acknowledgement);
      if (mturk === "refused") submitInFrame();
    });
  }

  // Browsers need not scroll a page of another origin, so the page around the frame is told.
  const scrollIntoView = Element.prototype.scrollIntoView;
  Element.prototype.scrollIntoView = function (...options) {
    scrollIntoView.apply(this, options);
    const { top, bottom } = this.getBoundingClientRect();
    tell({ mturk: "reveal", top, bottom });
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
