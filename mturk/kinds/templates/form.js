  // Shared by all pages: submit address and preview.
  const form = document.getElementById("answers");
  const button = document.getElementById("submit");
  const query = new URLSearchParams(location.search);
  const assignment = query.get("assignmentId") || "ASSIGNMENT_ID_NOT_AVAILABLE";
  const address = submitAddress(query.get("turkSubmitTo"));
  const isFirstTask = query.get("firstTask") === "true"; // from our site, so that workers see the instructions once
  const preview = assignment === "ASSIGNMENT_ID_NOT_AVAILABLE" || !address;

  form.noValidate = true; // messages of the page, in its language
  if (preview) showPreview(); else form.action = address;
  if (preview || isFirstTask) document.getElementById("instruction").open = true;
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
    button.disabled = true;
  }

  function show(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  // Add the time since the last answer to a field of seconds, which may be that of a restored draft.
  const milliseconds = new Map();
  let lastAnswer = performance.now();
  function addTime(field) {
    const before = milliseconds.has(field) ? milliseconds.get(field) : 1000 * Number(field.value);
    milliseconds.set(field, before + performance.now() - lastAnswer);
    lastAnswer = performance.now();
    field.value = (milliseconds.get(field) / 1000).toFixed(1);
  }

  // Show where something is missing: focus the field, on a touch screen the message, which has no keyboard.
  function focusProblem(field, message) {
    const isTouch = matchMedia("(pointer: coarse)").matches && message && message.textContent;
    if (isTouch) message.tabIndex = -1;
    (isTouch ? message : field).focus({ preventScroll: true });
    (isTouch ? message : field).scrollIntoView({ block: "center" });
  }
