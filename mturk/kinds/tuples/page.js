"use strict";
(function () {
{% include "form.js" %}
  const tuples = JSON.parse(document.getElementById("giccs-tuples").textContent);
  const parts = Array.from(form.querySelectorAll("[data-role=tuple]"), describe);
  const check = form.querySelector("[data-role=check]");

  parts.forEach(shuffle);
  let lastAnswer = performance.now();
  form.addEventListener("change", changed);
  form.addEventListener("submit", send);

  function describe(section, index) {
    const tuple = tuples[index];
    return {
      tuple: tuple,
      questions: Array.from(section.querySelectorAll("fieldset")),
      problem: section.querySelector(".problem"),
      shown: section.querySelector("[data-role=shown]"),
      seconds: section.querySelector("[data-role=seconds]"),
      spent: 0
    };
  }

  // The same assignment sees the same order whenever the page is loaded, and in both questions.
  function shuffle(part) {
    const order = permutation(part.tuple.items.length, generator(assignment + "\n" + part.tuple.tuple_id));
    part.questions.forEach(function (question) {
      const options = Array.from(question.querySelectorAll(".option"));
      order.forEach(function (place) { question.append(options[place]); });
    });
    part.shown.value = order.map(function (place) {
      return part.tuple.items[place].replace(/%/g, "%25").replace(/;/g, "%3B");
    }).join(";");
  }

  function permutation(length, random) { // Fisher and Yates
    const order = Array.from({ length: length }, function (_, place) { return place; });
    for (let last = length - 1; last; last -= 1) {
      const other = Math.floor(random() * (last + 1));
      [order[last], order[other]] = [order[other], order[last]];
    }
    return order;
  }

  function generator(text) { // FNV-1a of the text seeds mulberry32
    let state = 0x811c9dc5;
    for (const byte of new TextEncoder().encode(text)) state = Math.imul(state ^ byte, 0x01000193);
    return function () {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    };
  }

  function chosen(part) {
    return part.questions.map(function (question) { return question.querySelector("input:checked"); });
  }

  function isSame(part) {
    const [best, worst] = chosen(part);
    return Boolean(best && worst && best.value === worst.value);
  }

  // Time counts for the part in which the next answer is given or changed.
  function changed(event) {
    const part = parts.find(function (one) {
      return one.questions.some(function (question) { return question.contains(event.target); });
    });
    if (!part) {
      if (check && check.contains(event.target)) noWord();
      return;
    }
    part.spent += performance.now() - lastAnswer;
    lastAnswer = performance.now();
    part.seconds.value = (part.spent / 1000).toFixed(1);
    say(part.problem, isSame(part) ? form.dataset.same : "");
  }

  function send(event) {
    const wrong = [...parts.map(firstWrong), noWord()].filter(Boolean);
    if (!preview && !wrong.length) {
      button.disabled = true; // a second click sends nothing
      return;
    }
    event.preventDefault();
    if (wrong.length) wrong[0].focus();
  }

  // Says what is wrong and returns the radio button to go to, or null.
  function firstWrong(part) {
    const answers = chosen(part);
    const open = answers.indexOf(null);
    say(part.problem, open >= 0 ? form.dataset.missing : isSame(part) ? form.dataset.same : "");
    if (open >= 0) return part.questions[open].querySelector("input");
    return isSame(part) ? answers[1] : null;
  }

  function noWord() {
    const missing = check && !check.querySelector("input:checked");
    if (check) say(check.querySelector(".problem"), missing ? form.dataset.noWord : "");
    return missing ? check.querySelector("input") : null;
  }
})();
