  // Shared by the pages with levels of similarity, whose adapt(section) calls adaptLevels(section).
  function box(section) {
    return section.querySelector("[data-role=not-applicable]");
  }

  function levels(section) {
    return section.querySelector(".levels");
  }

  function fault(section) {
    if (box(section).checked || levels(section).querySelector("input:checked")) return null;
    return { text: messages.missing, field: levels(section).querySelector("input") };
  }

  function remark() { return null; }

  // A level and the box are mutually exclusive; radio buttons alone cannot be cleared.
  function adaptLevels(section) {
    const disabled = box(section).checked;
    if (disabled) levels(section).querySelectorAll("input").forEach(function (input) { input.checked = false; });
    levels(section).disabled = disabled;
  }
