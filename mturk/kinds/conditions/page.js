  // The same rules as `remark_on` of this kind; a remark asks to look again, a fault is refused.
  const lists = JSON.parse(form.dataset.words);

  function fields(section) {
    return ["high", "low"].map(function (role) { return section.querySelector("[data-role=" + role + "]"); });
  }

  function wordsOf(text) {
    return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];
  }

  function fault(section) {
    const [high, low] = fields(section);
    const open = [high, low].find(function (field) { return !wordsOf(field.value).length; });
    if (open) return { text: said.missing, field: open };
    if (wordsOf(high.value).join(" ") === wordsOf(low.value).join(" ")) return { text: said.same, field: low };
    return null;
  }

  function remark(section) {
    const sentences = Array.from(section.querySelectorAll(".pair .text"), function (one) { return one.textContent; });
    const found = fields(section).map(function (field) {
      const text = remarkOn(wordsOf(field.value), wordsOf(sentences.join(" ")));
      say(document.getElementById(field.getAttribute("aria-describedby").split(" ")[0]), text);
      return text && { text: text, field: field };
    });
    return found.find(Boolean) || null;
  }

  function remarkOn(words, sentences) {
    const about = words.find(function (word) { return lists.about.includes(word); });
    if (about) return said.about.replace("{word}", about);
    const value = words.find(function (word, place) {
      const stated = place && lists.copulas.includes(words[place - 1]) && sentences.includes(word);
      return stated || lists.values.includes(word) || /^\p{N}+$/u.test(word);
    });
    if (value) return said.value.replace("{word}", value);
    const left = words.filter(function (word) { return !lists.articles.includes(word); });
    return left.length === 1 && lists.vague.includes(left[0]) ? said.vague.replace("{word}", left[0]) : "";
  }

  function adapt() {}
