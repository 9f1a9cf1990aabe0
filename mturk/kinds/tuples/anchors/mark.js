  // All sentences, in the order of the slot.
  function arrange(section, tuple) {
    const items = Array.from(new Set(tuple.items));
    const question = section.querySelector("[data-role=question]");
    const options = Array.from(question.querySelectorAll(".option"));
    const last = options[items.length];
    chooseSlot(section, tuple.items, items.length).forEach(function (item) { last.before(options[items.indexOf(item)]); });
    return [question];
  }

  function boxes(question) {
    return Array.from(question.querySelectorAll("input[type=checkbox]"));
  }

  function firstField(question) {
    return question.querySelector("input");
  }

  // Marks, "none" and skipping are mutually exclusive.
  function changeAnswer(question, target) {
    if (!target.checked) return;
    boxes(question).forEach(function (box) {
      if (box.dataset.role !== target.dataset.role) box.checked = false;
    });
  }

  function isAnswered(question) {
    return boxes(question).some(function (box) { return box.checked; });
  }
