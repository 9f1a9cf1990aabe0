  // Of every page of questions: where its form goes, and its preview.
  const form = document.getElementById("answers");
  const button = document.getElementById("submit");
  const query = new URLSearchParams(location.search);
  const assignment = query.get("assignmentId") || "ASSIGNMENT_ID_NOT_AVAILABLE";
  const address = submitAddress(query.get("turkSubmitTo"));
  const preview = assignment === "ASSIGNMENT_ID_NOT_AVAILABLE" || !address;

  form.noValidate = true; // our own messages, in the language of the page
  if (preview) showPreview(); else form.action = address;
  form.elements.namedItem("assignmentId").value = assignment;
  addEventListener("pageshow", function () { button.disabled = preview; }); // also on coming back

  function submitAddress(base) {
    try {
      const url = new URL(base);
      return /^https?:$/.test(url.protocol) ? base.replace(/\/+$/, "") + "/mturk/externalSubmit" : null;
    } catch (error) {
      return null;
    }
  }

  function showPreview() {
    document.getElementById("preview-note").hidden = false;
    document.getElementById("instruction").open = true;
    button.disabled = true;
  }

  function say(place, text) {
    if (place.textContent !== text) place.textContent = text;
  }
