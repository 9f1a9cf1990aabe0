  // What both pages of sentence pairs do. Each brings fault(section) and remark(section), which return
  // {text, field} or null, say it, and adapt(section), called after every change.
  const sections = Array.from(form.querySelectorAll("[data-role=part]"));
  const spent = new Map();
  const accepted = new Set(); // remarks with which a worker sent once

  let lastAnswer = performance.now();
  sections.forEach(adapt); // a browser may bring old answers back
  form.addEventListener("input", changed);
  form.addEventListener("change", changed);
  form.addEventListener("submit", send);

  // Time counts for the part in which the next answer is given or changed.
  function changed(event) {
    const section = sections.find(function (one) { return one.contains(event.target); });
    if (!section) return;
    spent.set(section, (spent.get(section) || 0) + performance.now() - lastAnswer);
    lastAnswer = performance.now();
    section.querySelector("[data-role=seconds]").value = (spent.get(section) / 1000).toFixed(1);
    adapt(section);
    if (event.type === "change") remark(section);
    if (!fault(section)) say(section.querySelector(".problem"), "");
  }

  function send(event) {
    const wrong = sections.map(function (section) {
      const found = fault(section);
      say(section.querySelector(".problem"), found ? found.text : "");
      return found;
    }).filter(Boolean);
    const remarks = sections.map(remark).filter(function (found) {
      return found && !accepted.has(found.text + "\n" + found.field.value);
    });
    if (!preview && !wrong.length && !remarks.length) {
      button.disabled = true; // a second click sends nothing
      return;
    }
    event.preventDefault();
    remarks.forEach(function (found) { accepted.add(found.text + "\n" + found.field.value); });
    if (wrong.length || remarks.length) (wrong[0] || remarks[0]).field.focus();
  }
