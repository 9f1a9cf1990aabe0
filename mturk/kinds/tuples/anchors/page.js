  // One question at a time, so that other sentences are hidden. rating.js and mark.js define arrange(section,
  // tuple), which returns the questions of a dialogue, and changeAnswer(question, target), isAnswered(question)
  // and firstField(question).
  const tuples = JSON.parse(document.getElementById("giccs-tuples").textContent);
  const back = document.getElementById("back");
  const questions = Array.from(form.querySelectorAll("[data-role=part]")).flatMap(function (section, index) {
    return arrange(section, tuples[index]);
  });
  let current = 0;

  display(firstOpen());
  form.addEventListener("input", changed);
  form.addEventListener("change", changed);
  form.addEventListener("submit", send);
  back.addEventListener("click", function () { turnTo(current - 1); });
  addEventListener("pageshow", function () { display(firstOpen()); }); // the browser may restore old answers

  // The slot depends on the number of the assignment among those of the HIT, which our service adds to the
  // address; at other services on a hash of the assignment.
  function chooseSlot(section, items, size) {
    const slots = items.length / size;
    const number = query.get("assignmentNumber");
    const slot = number ? Number(number) % slots : Math.floor(slots * generator(assignment)());
    section.querySelector("[data-role=slot]").value = slot + 1;
    return items.slice(size * slot, size * (slot + 1));
  }

  function display(index) {
    current = index;
    const section = questions[current].closest("[data-role=part]");
    form.querySelectorAll("[data-role=part]").forEach(function (other) { other.hidden = other !== section; });
    questions.forEach(function (question, position) { question.hidden = position !== current; });
    back.hidden = current === 0;
    button.textContent = isLast() ? form.dataset.submit : form.dataset.next;
  }

  function turnTo(index) {
    const before = questions[current].closest("[data-role=part]");
    display(index);
    const section = questions[current].closest("[data-role=part]");
    firstField(questions[current]).focus({ preventScroll: true });
    (section === before ? questions[current] : section).scrollIntoView({ block: section === before ? "center" : "start" });
  }

  function isLast() {
    return current === questions.length - 1;
  }

  function firstOpen() {
    const index = questions.findIndex(function (question) { return !isAnswered(question); });
    return index < 0 ? questions.length - 1 : index;
  }

  // Time is added to the dialogue of the next new or changed answer.
  function changed(event) {
    const question = questions.find(function (question) { return question.contains(event.target); });
    if (!question) return;
    const isRestored = !event.isTrusted && event.target.name; // from a draft
    if (event.type === "input" || isRestored) changeAnswer(question, event.target);
    addTime(question.closest("[data-role=part]").querySelector("[data-role=seconds]"));
    if (isAnswered(question)) show(question.querySelector(".problem"), "");
    if (isRestored) display(firstOpen());
  }

  // Also for the key Enter in a field.
  function send(event) {
    const isMissing = !isAnswered(questions[current]);
    if (!preview && !isMissing && isLast() && questions.every(isAnswered)) {
      button.disabled = true; // prevents a second submission
      return;
    }
    event.preventDefault();
    if (!isMissing) {
      turnTo(isLast() ? firstOpen() : current + 1);
      return;
    }
    const message = questions[current].querySelector(".problem");
    show(message, form.dataset.missing);
    focusProblem(firstField(questions[current]), message);
  }
