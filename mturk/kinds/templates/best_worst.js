"use strict";
(function () {
{% include "form.js" %}
  const tuples = JSON.parse(document.getElementById("giccs-tuples").textContent);
  const parts = Array.from(form.querySelectorAll("[data-role=tuple]"), describe);
  const check = form.querySelector("[data-role=check]");

  parts.forEach(shuffle);
  form.addEventListener("change", changed);
  form.addEventListener("submit", send);

  function describe(section, index) {
    const tuple = tuples[index];
    return {
      tuple: tuple,
      questions: Array.from(section.querySelectorAll("fieldset")),
      problem: section.querySelector(".problem"),
      shown: section.querySelector("[data-role=shown]"),
      seconds: section.querySelector("[data-role=seconds]")
    };
  }

  // The order depends on the assignment only; it is the same in both questions and after reloading.
  function shuffle(part) {
    const order = permutation(part.tuple.items.length, generator(assignment + "\n" + part.tuple.tuple_id));
    part.questions.forEach(function (question) {
      const options = Array.from(question.querySelectorAll(".option"));
      order.forEach(function (index) { question.append(options[index]); });
    });
    part.shown.value = order.map(function (index) {
      return part.tuple.items[index].replace(/%/g, "%25").replace(/;/g, "%3B");
    }).join(";");
  }

  function permutation(length, random) { // Fisher and Yates
    const order = Array.from({ length: length }, function (_, index) { return index; });
    for (let last = length - 1; last; last -= 1) {
      const other = Math.floor(random() * (last + 1));
      [order[last], order[other]] = [order[other], order[last]];
    }
    return order;
  }

{% include "random.js" %}

  function selected(part) {
    return part.questions.map(function (question) { return question.querySelector("input:checked"); });
  }

  function isSame(part) {
    const [best, worst] = selected(part);
    return Boolean(best && worst && best.value === worst.value);
  }

  // Time is added to the part of the next new or changed answer.
  function changed(event) {
    const part = parts.find(function (part) {
      return part.questions.some(function (question) { return question.contains(event.target); });
    });
    if (!part) {
      if (check && check.contains(event.target)) checkWord();
      return;
    }
    addTime(part.seconds);
    show(part.problem, isSame(part) ? form.dataset.same : "");
  }

  function send(event) {
    const invalid = [...parts.map(firstInvalid), checkWord()].filter(Boolean);
    if (!preview && !invalid.length) {
      button.disabled = true; // prevents a second submission
      return;
    }
    event.preventDefault();
    if (invalid.length) focusProblem(invalid[0], invalid[0].closest(".part").querySelector(".problem"));
  }

  // Show the problem and return the radio button to focus, or null.
  function firstInvalid(part) {
    const answers = selected(part);
    const missing = answers.indexOf(null);
    show(part.problem, missing >= 0 ? form.dataset.missing : isSame(part) ? form.dataset.same : "");
    if (missing >= 0) return part.questions[missing].querySelector("input");
    return isSame(part) ? answers[1] : null;
  }

  function checkWord() {
    const missing = check && !check.querySelector("input:checked");
    if (check) show(check.querySelector(".problem"), missing ? form.dataset.noWord : "");
    return missing ? check.querySelector("input") : null;
  }
})();
