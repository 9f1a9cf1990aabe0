  // The same rules as `find_remark` of this kind. Remarks are shown once, faults prevent submission.
  const lists = JSON.parse(form.dataset.words);

  function fields(section) {
    return ["high", "low"].map(function (role) { return section.querySelector("[data-role=" + role + "]"); });
  }

  function wordsOf(text) {
    return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];
  }

  function fault(section) {
    const [high, low] = fields(section);
    const empty = [high, low].find(function (field) { return !wordsOf(field.value).length; });
    if (empty) return { text: messages.missing, field: empty };
    if (wordsOf(high.value).join(" ") === wordsOf(low.value).join(" ")) return { text: messages.same, field: low };
    return null;
  }

  function remark(section) {
    const sentences = Array.from(section.querySelectorAll(".pair .text"), function (element) { return element.textContent; });
    const remarks = fields(section).map(function (field) {
      const text = remarkOn(wordsOf(field.value), wordsOf(sentences.join(" ")));
      show(document.getElementById(field.getAttribute("aria-describedby").split(" ")[0]), text);
      return text && { text: text, field: field };
    });
    return remarks.find(Boolean) || null;
  }

  function remarkOn(words, sentences) {
    const about = words.find(function (word) { return lists.about.includes(word); });
    if (about) return messages.about.replace("{word}", about);
    const value = words.find(function (word, index) {
      const stated = index && lists.copulas.includes(words[index - 1]) && sentences.includes(word);
      return stated || lists.values.includes(word) || /^\p{N}+$/u.test(word);
    });
    if (value) return messages.value.replace("{word}", value);
    const left = words.filter(function (word) { return !lists.articles.includes(word); });
    return left.length === 1 && lists.vague.includes(left[0]) ? messages.vague.replace("{word}", left[0]) : "";
  }

  function adapt() {}
