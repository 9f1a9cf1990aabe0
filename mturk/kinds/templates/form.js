  // Shared by all pages: submit address and preview.
  const form = document.getElementById("answers");
  const button = document.getElementById("submit");
  const query = new URLSearchParams(location.search);
  const assignment = query.get("assignmentId") || "ASSIGNMENT_ID_NOT_AVAILABLE";
  const address = submitAddress(query.get("turkSubmitTo"));
  const preview = assignment === "ASSIGNMENT_ID_NOT_AVAILABLE" || !address;

  form.noValidate = true; // messages of the page, in its language
  if (preview) showPreview(); else form.action = address;
  form.elements.namedItem("assignmentId").value = assignment;
  addEventListener("pageshow", function () { button.disabled = preview; }); // also when navigating back

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

  function show(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }
