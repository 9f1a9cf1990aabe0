{% include "levels.js" %}
  // A binary condition permits the levels 1, 3 and 5; an invalid one is neither binary nor graded.
  function adapt(section) {
    const binary = section.querySelector("[data-role=binary]");
    if (box(section).checked) binary.checked = false;
    binary.disabled = box(section).checked;
    levels(section).querySelectorAll("input").forEach(function (input) {
      input.disabled = binary.checked && input.value % 2 === 0;
      if (input.disabled) input.checked = false;
    });
    adaptLevels(section);
  }
