  // Two sentences, one after the other.
  function arrange(section, tuple) {
    const items = Array.from(new Set(tuple.items));
    const all = Array.from(section.querySelectorAll("[data-role=question]"));
    const pair = chooseSlot(section, tuple.items, 2).map(function (item) { return all[items.indexOf(item)]; });
    all.forEach(function (question) { question.remove(); });
    pair.forEach(function (question) {
      section.append(question);
      const slider = firstField(question);
      slider.addEventListener("pointerup", function () { choose(question); }); // also where the slider is already
      slider.addEventListener("keydown", function (event) { if (event.key === " ") choose(question); });
      showValue(question);
    });
    addEventListener("pageshow", function () { pair.forEach(showValue); });
    return pair;
  }

  function role(question, name) {
    return question.querySelector("[data-role=" + name + "]");
  }

  function firstField(question) {
    return role(question, "slider");
  }

  function choose(question) {
    if (!role(question, "value").value) firstField(question).dispatchEvent(new InputEvent("input", { bubbles: true }));
  }

  function changeAnswer(question, target) {
    const value = role(question, "value");
    const skip = role(question, "skip");
    if (target === firstField(question)) value.value = target.value;
    if (target === skip && skip.checked) value.value = "";
    if (target !== skip && value.value) skip.checked = false;
    showValue(question);
  }

  function showValue(question) {
    const value = role(question, "value").value;
    const slider = firstField(question);
    role(question, "scale").classList.toggle("unset", !value);
    if (value) slider.value = value;
    slider.setAttribute("aria-valuetext", value || form.dataset.unanswered);
  }

  function isAnswered(question) {
    return Boolean(role(question, "value").value || role(question, "skip").checked);
  }
