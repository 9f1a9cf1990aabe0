  // Shared by the pages of sentence pairs. Each page defines fault(section) and remark(section), which return
  // {text, field} or null, and adapt(section), which is called after every change.
  const sections = Array.from(form.querySelectorAll("[data-role=part]"));
  const accepted = new Set(); // remarks that were shown at an earlier submission

  sections.forEach(adapt); // the browser may restore old answers
  form.addEventListener("input", changed);
  form.addEventListener("change", changed);
  form.addEventListener("submit", send);

  // Time is added to the part of the next new or changed answer.
  function changed(event) {
    const section = sections.find(function (section) { return section.contains(event.target); });
    if (!section) return;
    addTime(section.querySelector("[data-role=seconds]"));
    adapt(section);
    if (event.type === "change") remark(section);
    if (!fault(section)) show(section.querySelector(".problem"), "");
  }

  function send(event) {
    const faults = sections.map(function (section) {
      const problem = fault(section);
      show(section.querySelector(".problem"), problem ? problem.text : "");
      return problem;
    }).filter(Boolean);
    const remarks = sections.map(remark).filter(function (item) {
      return item && !accepted.has(item.text + "\n" + item.field.value);
    });
    if (!preview && !faults.length && !remarks.length) {
      button.disabled = true; // prevents a second submission
      return;
    }
    event.preventDefault();
    remarks.forEach(function (item) { accepted.add(item.text + "\n" + item.field.value); });
    const problem = faults[0] || remarks[0];
    if (problem) focusProblem(problem.field, messageOf(problem));
  }

  // Return the element with the message of a fault or remark.
  function messageOf(problem) {
    const section = problem.field.closest("[data-role=part]");
    return Array.from(section.querySelectorAll("[aria-live], .problem")).find(function (element) {
      return element.textContent.includes(problem.text);
    });
  }
