  function box(section) {
    return section.querySelector("[data-role=not-applicable]");
  }

  function levels(section) {
    return section.querySelector(".levels");
  }

  function fault(section) {
    if (box(section).checked || levels(section).querySelector("input:checked")) return null;
    return { text: said.missing, field: levels(section).querySelector("input") };
  }

  function remark() { return null; }

  // A level and the box exclude each other; a radio button alone could not be taken back.
  function adapt(section) {
    const off = box(section).checked;
    if (off) levels(section).querySelectorAll("input").forEach(function (input) { input.checked = false; });
    levels(section).disabled = off;
  }
