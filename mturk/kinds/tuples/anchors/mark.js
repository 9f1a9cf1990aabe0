  // The order depends on the assignment only; it is the same after reloading.
  function arrange(section, tuple) {
    const order = permutation(tuple.items.length, generator(assignment + "\n" + tuple.tuple_id));
    const question = section.querySelector("[data-role=question]");
    const options = Array.from(question.querySelectorAll(".option"));
    const last = options[tuple.items.length];
    order.forEach(function (index) { last.before(options[index]); });
    section.querySelector("[data-role=order]").value = order.map(function (index) {
      return tuple.items[index].replace(/%/g, "%25").replace(/;/g, "%3B");
    }).join(";");
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
